"""The whole report of a broker, read by Prometheus' own parser."""

import re
from pathlib import Path

import pytest

from headwater.base.errors import ErrorCode
from headwater.broker.metrics.load_meter import LoadMeter
from headwater.broker.metrics.report import MetricsReport
from headwater.net.limits import ConnectionLimits
from headwater.wire.api_keys import ApiKey
from tests.support.brokers.handler_broker import HandlerBroker, run_with_broker
from tests.support.metric_figures import figure, read


def report_of(broker: HandlerBroker) -> MetricsReport:
    return MetricsReport(broker.context, ConnectionLimits(), LoadMeter(None))


def test_the_figures_of_the_notes_are_there_with_kafkas_names(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        text = "".join(report_of(broker).pieces())
        for mbean in (
            "BytesInPerSec",
            "BytesOutPerSec",
            "MessagesInPerSec",
            "NetworkProcessorAvgIdlePercent",
            "RequestHandlerAvgIdlePercent",
            "UnderReplicatedPartitions",
            "IsrShrinksPerSec",
            "IsrExpandsPerSec",
            "ActiveControllerCount",
            "OfflinePartitionsCount",
        ):
            assert re.search(rf"# HELP headwater_\w+ .*name={mbean}\b", text), mbean
        figures = read([text])
        assert figure(figures, "headwater_active_controller_count") == 1
        assert figure(figures, "headwater_offline_partitions") == 0
        assert figure(figures, "headwater_network_processor_avg_idle_percent") == 1
        assert figure(figures, "process_resident_memory_bytes") > 10 << 20
        assert figure(figures, "process_open_fds") > 3

    run_with_broker(tmp_path, scenario)


def test_traffic_and_logs(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await broker.create_topic("orders", partitions=2)
        await broker.create_topic("gone")
        broker.append("orders", 1, 2, 3, partition=1)
        broker.append("gone", 1)
        partition = broker.context.partitions.get("orders", 1)
        partition.bytes_out += 70
        figures = read(report_of(broker).pieces())
        size = partition.log.size_bytes
        names = {"topic": "orders", "partition": "1"}
        assert figure(figures, "headwater_log_size_bytes", **names) == size
        assert figure(figures, "headwater_log_start_offset", **names) == 0
        assert figure(figures, "headwater_log_end_offset", **names) == 3
        assert figure(figures, "headwater_topic_messages_in_total", topic="orders") == 3
        assert figure(figures, "headwater_topic_bytes_out_total", topic="orders") == 70
        assert figure(figures, "headwater_messages_in_total") == 4
        assert figure(figures, "headwater_partitions") == 3
        assert figure(figures, "headwater_leaders") == 3
        bytes_in = figure(figures, "headwater_bytes_in_total")
        await broker.context.controller.delete_topics(["gone"])
        figures = read(report_of(broker).pieces())
        assert figure(figures, "headwater_bytes_in_total") == bytes_in, "totals never go back"
        assert ("headwater_topic_bytes_in_total", frozenset({("topic", "gone")})) not in figures

    run_with_broker(tmp_path, scenario)


def test_requests_errors_and_connections(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        metrics = broker.context.metrics
        metrics.record_request(ApiKey.LIST_OFFSETS, 0.002)
        metrics.record_error(ApiKey.PRODUCE, ErrorCode.NOT_ENOUGH_REPLICAS)
        metrics.record_error(ApiKey.PRODUCE, 12345)
        broker.context.replication.isr_changes.isr_shrinks = 4
        report = report_of(broker)
        report._limits.counters.refused = 9
        figures = read(report.pieces())
        assert figure(figures, "headwater_request_seconds_count", api="ListOffsets") == 1
        assert figure(figures, "headwater_request_seconds_sum", api="ListOffsets") == 0.002
        bucket = "headwater_request_seconds_bucket"
        assert figure(figures, bucket, api="ListOffsets", le="0.001024") == 0
        assert figure(figures, bucket, api="ListOffsets", le="0.002048") == 1
        errors = "headwater_errors_total"
        assert figure(figures, errors, api="Produce", error="NOT_ENOUGH_REPLICAS") == 1
        assert figure(figures, errors, api="Produce", error="UNKNOWN_SERVER_ERROR") == 1
        assert figure(figures, "headwater_isr_shrinks_total") == 4
        assert figure(figures, "headwater_connections_refused_total") == 9
        assert figure(figures, "headwater_purgatory_size", operation="Fetch") == 0

    run_with_broker(tmp_path, scenario)


@pytest.mark.parametrize(
    ("limit", "by_partition", "by_topic"), [(3, True, True), (2, False, True), (1, False, False)]
)
def test_many_partitions_are_shown_by_topic_and_many_topics_as_one(
    tmp_path: Path, limit: int, by_partition: bool, by_topic: bool
) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await broker.create_topic("orders", partitions=2)
        await broker.create_topic("others")
        broker.append("orders", 1, 2, 3)
        figures = read(report_of(broker).pieces())
        names = {name for name, _ in figures}
        assert ("headwater_log_size_bytes" in names) == by_partition
        assert ("headwater_topic_bytes_in_total" in names) == by_topic
        size = broker.context.partitions.get("orders", 0).log.size_bytes
        if not by_partition and by_topic:
            assert figure(figures, "headwater_topic_log_size_bytes", topic="orders") == size
        elif not by_topic:
            assert figure(figures, "headwater_topic_log_size_bytes") == size

    run_with_broker(tmp_path, scenario, {"metrics.partitions.max": str(limit)})
