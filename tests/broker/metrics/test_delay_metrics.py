"""What a broker's page says about messages that wait."""

import asyncio
from pathlib import Path

from headwater.broker.metrics.delay_metrics import delay_metrics
from headwater.wire.records import Record, encode_batch
from tests.support.brokers.handler_broker import HandlerBroker, run_with_broker
from tests.support.metric_figures import figure, read


def test_what_waits_and_what_was_delivered(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await broker.create_topic("orders", configs={"delay.mode": "header"})
        await broker.create_topic("other")
        partition = broker.context.partitions.get("orders", 0)
        for delay in (b"1h", b"30s", b"0"):
            record = Record(0, 1, None, b"v", (("headwater-delay", delay),))
            now_ms = broker.context.clock.wall_ms()
            partition.append(encode_batch([record]), acks=1, now_ms=now_ms)
        ((_, delays),) = broker.context.delays
        while delays.hand_over.delivered_count == 0:
            await asyncio.sleep(0.01)
        figures = read(delay_metrics(broker.context, 10))
        assert figure(figures, "headwater_delay_waiting", topic="orders") == 2
        assert figure(figures, "headwater_delay_waiting_bytes", topic="orders") > 0
        assert figure(figures, "headwater_delay_due_within_minute", topic="orders") == 1
        assert figure(figures, "headwater_delay_delivered_total", topic="orders") == 1
        assert figure(figures, "headwater_delay_overdue_seconds", topic="orders") == 0
        assert figure(figures, "headwater_delay_lateness_seconds_count") == 1
        assert ("headwater_delay_waiting", frozenset({("topic", "other")})) not in figures
        sums = read(delay_metrics(broker.context, 0))
        assert figure(sums, "headwater_delay_waiting") == 2

    run_with_broker(tmp_path, scenario)
