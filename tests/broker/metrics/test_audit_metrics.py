"""What a broker shows of its audit."""

from pathlib import Path

from headwater.broker.metrics.load_meter import LoadMeter
from headwater.broker.metrics.report import MetricsReport
from headwater.net.limits import ConnectionLimits
from tests.support.brokers.handler_broker import HandlerBroker, run_with_broker
from tests.support.metric_figures import Figures, figure, read


def figures_of(broker: HandlerBroker) -> Figures:
    return read(MetricsReport(broker.context, ConnectionLimits(), LoadMeter(None)).pieces())


def test_what_is_published_and_what_is_not(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await broker.create_topic("orders")
        broker.append("orders", 0, 1, 2)
        publisher = broker.context.audit_publisher
        publisher.look()
        assert figure(figures_of(broker), "headwater_audit_behind_offsets") == 3
        await publisher.publish_all()
        figures = figures_of(broker)
        assert figure(figures, "headwater_audit_behind_offsets") == 0
        assert figure(figures, "headwater_audit_records_counted_total") == 3
        assert figure(figures, "headwater_audit_rows_published_total") == 1
        assert figure(figures, "headwater_audit_failures_total") == 0

    run_with_broker(tmp_path, scenario)


def test_what_cannot_be_published_is_tried_again(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await broker.create_topic("orders")
        broker.append("orders", 0)
        publisher = broker.context.audit_publisher
        publisher.look()
        await publisher.publish_all()
        assert figure(figures_of(broker), "headwater_audit_failures_total") == 1
        assert figure(figures_of(broker), "headwater_audit_behind_offsets") == 1

    # There are not so many brokers, so the topic cannot be made.
    run_with_broker(tmp_path, scenario, {"audit.topic.replication.factor": "3"})
