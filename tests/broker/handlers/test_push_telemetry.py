"""Clients ask what to push and push it: every error, the page, and who is told of the APIs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from headwater.base.errors import ErrorCode, KafkaError
from headwater.broker.metrics.load_meter import LoadMeter
from headwater.broker.metrics.report import MetricsReport
from headwater.broker.telemetry.client_telemetry import EXPANSION_MAX
from headwater.net.limits import ConnectionLimits
from headwater.wire.api_keys import ApiKey
from headwater.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from headwater.wire.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsResponse,
)
from headwater.wire.records.compression import Compression, compress
from headwater.wire.schema import ZERO_UUID
from tests.support.brokers.handler_broker import HandlerBroker, run_with_broker
from tests.support.brokers.telemetry_asking import ask, push, subscribe
from tests.support.metric_figures import Figures, figure, read
from tests.support.values.pushed_metrics import KAFKA, gauge, histogram, pushed, total

SHOWN = {"metrics.listen": "127.0.0.1:0"}
APIS = {ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY}


def figures_of(broker: HandlerBroker) -> Figures:
    return read(MetricsReport(broker.context, ConnectionLimits(), LoadMeter(None)).pieces())


def client_figures(broker: HandlerBroker) -> dict[str, float]:
    """What clients have pushed, without labels."""
    return {
        name.removeprefix("headwater_client_"): value
        for (name, _), value in figures_of(broker).items()
        if name.startswith("headwater_client_")
    }


def test_what_a_client_is_told(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        nothing = await ask(broker)
        assert nothing.requested_metrics == [] and nothing.push_interval_ms == 300_000
        await subscribe(broker, metrics="b.,a.", interval_ms="1000", match="client_id=te.*")
        told = await ask(broker, nothing.client_instance_id)
        assert told.client_instance_id == nothing.client_instance_id
        assert told.subscription_id != nothing.subscription_id
        assert told.requested_metrics == ["a.", "b."] and told.push_interval_ms == 1000
        assert told.telemetry_max_bytes == 1 << 20 and not told.delta_temporality
        assert told.accepted_compression_types == [4, 3, 1, 2]
        another = await ask(broker)
        assert another.client_instance_id not in (ZERO_UUID, told.client_instance_id)
        await subscribe(broker, match="client_id=other")
        assert (await ask(broker)).requested_metrics == []
        with pytest.raises(KafkaError) as raised:
            await ask(broker, another.client_instance_id)
            await ask(broker, another.client_instance_id)
        assert raised.value.code is ErrorCode.THROTTLING_QUOTA_EXCEEDED

    run_with_broker(tmp_path, scenario, SHOWN)


@pytest.mark.parametrize("compression", list(Compression))
def test_what_is_pushed_is_on_the_page(tmp_path: Path, compression: Compression) -> None:
    data = pushed(
        [
            gauge(f"{KAFKA}producer.node.request.latency.avg", 1.5, **{"node.id": "1"}),
            total(f"{KAFKA}producer.connection.creation.total", 7),
            histogram("app.seconds", 3, 0.5),
        ],
        group_id="g",
    )

    async def scenario(broker: HandlerBroker) -> None:
        await subscribe(broker)
        broker.connection.state["client_software"] = ("librdkafka", "2.1")
        told = await ask(broker)
        assert await push(broker, told, compress(compression, data), compression) == 0
        figures = figures_of(broker)
        instance = next(
            value for _, names in figures for name, value in names if name == "client_instance_id"
        )
        who = {"client_id": "test", "client_instance_id": instance}
        prefix = "headwater_client_"
        latency = figure(figures, f"{prefix}producer_node_request_latency_avg", node_id="1", **who)
        assert latency == 1.5
        assert figure(figures, f"{prefix}producer_connection_creation_total", **who) == 7
        assert figure(figures, f"{prefix}app_seconds_count", **who) == 3
        assert figure(figures, f"{prefix}app_seconds_sum", **who) == 0.5
        software = {"client_software_name": "librdkafka", "client_software_version": "2.1"}
        known = {**who, **software, "client_source_address": "192.0.2.9", "group_id": "g"}
        assert figure(figures, f"{prefix}info", **known) == 1
        assert figure(figures, "headwater_telemetry_pushes_total") == 1
        assert figure(figures, "headwater_telemetry_instances") == 1
        assert figure(figures, "headwater_telemetry_series") == 4

    run_with_broker(tmp_path, scenario, SHOWN)


def test_what_is_refused(tmp_path: Path) -> None:
    data = pushed([gauge("a", 1)])
    bomb = compress(Compression.ZSTD, bytes(EXPANSION_MAX * 1000 + 1))

    async def scenario(broker: HandlerBroker) -> None:
        await subscribe(broker, interval_ms="3600000")

        async def refused(data: bytes, compression: int = 0, by: int | None = None) -> ErrorCode:
            return await push(broker, await ask(broker), data, compression, subscription_id=by)

        assert await refused(data, by=5) is ErrorCode.UNKNOWN_SUBSCRIPTION_ID
        assert await refused(data, 5) is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
        assert await refused(data, -1) is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
        assert await refused(bytes(1001)) is ErrorCode.TELEMETRY_TOO_LARGE
        assert await refused(bomb, Compression.ZSTD) is ErrorCode.TELEMETRY_TOO_LARGE
        assert await refused(data, Compression.ZSTD) is ErrorCode.INVALID_RECORD
        assert await refused(data, Compression.GZIP) is ErrorCode.INVALID_RECORD
        assert await refused(b"garbage") is ErrorCode.INVALID_RECORD
        nobody = GetTelemetrySubscriptionsResponse()
        assert await push(broker, nobody, data) is ErrorCode.INVALID_REQUEST
        told = await ask(broker)
        assert await push(broker, told, data, 5) is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
        # It may ask once more at once, but it has had its turn to push.
        assert (await ask(broker, told.client_instance_id)).error_code == 0
        assert await push(broker, told, data) is ErrorCode.THROTTLING_QUOTA_EXCEEDED
        assert await push(broker, told, b"", terminating=True) is ErrorCode.NONE
        assert await push(broker, told, data) is ErrorCode.INVALID_REQUEST
        assert client_figures(broker) == {}

    run_with_broker(tmp_path, scenario, {**SHOWN, "telemetry.max.bytes": "1000"})


def test_what_was_not_asked_for_is_not_shown(tmp_path: Path) -> None:
    data = pushed([gauge("a.b", 1), gauge("c.d", 2)])

    async def scenario(broker: HandlerBroker) -> None:
        assert await push(broker, await ask(broker), data) == 0
        assert client_figures(broker) == {}
        await subscribe(broker, metrics="a.")
        assert await push(broker, await ask(broker), data) == 0
        assert client_figures(broker) == {"a_b": 1, "info": 1}
        assert figure(figures_of(broker), "headwater_telemetry_series_dropped_total") == 3

    run_with_broker(tmp_path, scenario, SHOWN)


def test_the_number_of_series_is_bounded(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await subscribe(broker)
        for number in range(5):
            told = await ask(broker)
            assert await push(broker, told, pushed([gauge("a", number), gauge("b", 1)])) == 0
        figures = figures_of(broker)
        assert figure(figures, "headwater_telemetry_series") == 4
        assert figure(figures, "headwater_telemetry_series_dropped_total") == 11

    run_with_broker(tmp_path, scenario, {**SHOWN, "telemetry.series.max": "4"})


@pytest.mark.parametrize(
    ("settings", "is_told"),
    [
        ({}, False),
        (SHOWN, True),
        ({"telemetry.otlp.endpoint": "http://127.0.0.1:9/v1/metrics"}, True),
        ({**SHOWN, "telemetry.enable": "false"}, False),
    ],
)
def test_clients_are_told_where_somebody_receives(
    tmp_path: Path, settings: Mapping[str, str], is_told: bool
) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        answer = await broker.ask(ApiVersionsRequest(), ApiVersionsResponse, version=0)
        told = {each.api_key for each in answer.api_keys}
        assert (told & APIS) == (APIS if is_told else set())
        for key in APIS:
            assert (broker.context.api_table.get(key) is not None) is is_told
        assert any("telemetry" in name for name, _ in figures_of(broker)) is is_told

    run_with_broker(tmp_path, scenario, settings)
