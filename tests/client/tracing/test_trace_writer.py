"""The writer's queue has a bound, nobody waits for it, and what is lost is counted."""

import asyncio
import logging
from collections.abc import Callable

import pytest

from headwater.base.errors import ErrorCode, KafkaError
from headwater.client.producer.record_metadata import OnDelivery, RecordMetadata
from headwater.client.tracing.trace_step import (
    CREATED,
    TraceLink,
    TraceStep,
    decode_step,
)
from headwater.client.tracing.trace_writer import TraceWriter

TRACE = "0af7651916cd43dd8448eb211c80319c"
REFUSED = KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "not for you")


def step(number: int) -> TraceStep:
    return TraceStep(TRACE, CREATED, number)


class FakeProducer:
    """Takes records as it is told to."""

    def __init__(self) -> None:
        self.times: list[int | None] = []
        self.is_stuck = False
        self.refusal: KafkaError | None = None
        self.late_error: KafkaError | None = None
        self.is_closed = False

    async def start(self) -> None:
        pass

    async def send(
        self,
        topic: str,
        value: bytes,
        key: bytes,
        *,
        timestamp_ms: int | None,
        on_delivery: OnDelivery,
    ) -> None:
        if self.is_stuck:
            await asyncio.Event().wait()
        if self.refusal is not None:
            raise self.refusal
        if self.late_error is not None:
            on_delivery(None, self.late_error)
            return
        found = decode_step(value)
        self.times.append(timestamp_ms if found is None else found.time_ms)
        on_delivery(RecordMetadata(topic, 0, 0, 0), None)

    async def flush(self) -> None:
        pass

    async def close(self, timeout_s: float) -> None:
        self.is_closed = True


def run(scenario: Callable[[TraceWriter, FakeProducer], object], steps_max: int = 10) -> None:
    async def whole() -> None:
        producer = FakeProducer()
        made: list[FakeProducer] = []

        def make() -> FakeProducer:
            made.append(producer)
            return producer

        writer = TraceWriter("__trace", steps_max, make)
        result = scenario(writer, producer)
        if asyncio.iscoroutine(result):
            await result
        assert len(made) <= 1

    asyncio.run(whole())


def test_what_is_put_is_written_in_order() -> None:
    async def scenario(writer: TraceWriter, producer: FakeProducer) -> None:
        await asyncio.to_thread(writer.put, [step(1), step(2)], [TraceLink("orders-0@1", TRACE)])
        writer.put([step(3)], [])
        await writer.close(10)
        assert producer.times == [1, 2, None, 3]
        assert (writer.dropped_count, producer.is_closed) == (0, True)

    run(scenario)


def test_what_has_no_room_is_dropped_and_counted() -> None:
    async def scenario(writer: TraceWriter, producer: FakeProducer) -> None:
        writer.put([step(number) for number in range(8)], [])
        writer.put([step(number) for number in range(8, 12)], [TraceLink("orders-0@1", TRACE)])
        writer.put([step(12)], [])
        assert writer.dropped_count == 3
        await writer.close(10)
        assert producer.times == list(range(10))

    run(scenario)


def test_a_producer_that_is_stuck_holds_up_nobody(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(writer: TraceWriter, producer: FakeProducer) -> None:
        producer.is_stuck = True
        for number in range(100):
            writer.put([step(number)], [])
        await writer.close(0.05)
        assert producer.is_closed
        assert writer.dropped_count == 100

    with caplog.at_level(logging.WARNING):
        run(scenario)
    assert "100 steps of traces were not written to __trace." in caplog.text


def test_what_the_cluster_refuses_is_counted_and_told(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(writer: TraceWriter, producer: FakeProducer) -> None:
        producer.refusal = REFUSED
        writer.put([step(1)], [TraceLink("orders-0@1", TRACE)])
        await writer.close(10)
        assert writer.dropped_count == 1

    with caplog.at_level(logging.WARNING):
        run(scenario)
    assert "not for you" in caplog.text


def test_what_fails_later_is_counted_too() -> None:
    async def scenario(writer: TraceWriter, producer: FakeProducer) -> None:
        producer.late_error = REFUSED
        writer.put([step(1), step(2)], [])
        await writer.close(10)
        assert writer.dropped_count == 2

    run(scenario)


def test_who_traces_nothing_makes_no_producer() -> None:
    async def scenario(writer: TraceWriter, producer: FakeProducer) -> None:
        await writer.close(10)
        assert not producer.is_closed

    run(scenario)


def test_nothing_is_written_after_the_end_of_the_loop() -> None:
    met: list[tuple[TraceWriter, FakeProducer]] = []
    run(lambda writer, producer: met.append((writer, producer)), steps_max=2)
    [(writer, producer)] = met
    writer.put([step(1), step(2)], [])
    writer.put([step(3)], [])
    assert producer.times == []
    assert writer.dropped_count == 1, "what waits has its bound there too"
