"""What is told of batches: that they leave, that they leave again, that they fail."""

import random
from collections.abc import Sequence

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import TopicPartition
from headwater.client.producer.batches.batch import ProduceBatch
from headwater.client.producer.intake.serialized_record import SerializedRecord
from headwater.client.producer.record import HeadersLike, ProducerRecord
from headwater.client.tracing.producer_trace import ProducerTrace
from headwater.client.tracing.sampling import Sampler
from headwater.client.tracing.trace_context import TraceContext
from headwater.client.tracing.trace_step import (
    CREATED,
    FAILED,
    RETRIED,
    SENT,
    TraceLink,
    TraceStep,
)
from headwater.client.tracing.tracer import Tracer

CONTEXT = TraceContext("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331")
MOVED = KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "moved")


class Steps:
    """A sink."""

    dropped_count = 0

    def __init__(self) -> None:
        self.steps: list[TraceStep] = []

    def put(self, steps: Sequence[TraceStep], links: Sequence[TraceLink]) -> None:
        self.steps += steps

    async def close(self, timeout_s: float) -> None:
        pass


class BrokenSteps(Steps):
    def put(self, steps: Sequence[TraceStep], links: Sequence[TraceLink]) -> None:
        raise RuntimeError("broken")


def make_trace(sink: Steps, share: float = 0.0) -> ProducerTrace:
    generator = random.Random(1)
    tracer = Tracer("c", [sink], wall_ms=lambda: 5, generator=generator)
    trace = ProducerTrace(tracer, Sampler(generator))
    trace.sampler.set_share("orders", share)
    return trace


def make_batch() -> ProduceBatch:
    """Of a record that is traced, and two that are not."""
    batch = ProduceBatch(TopicPartition("orders", 3), 0.0)
    unsampled = CONTEXT._replace(flags=0)
    for headers in ((), tuple(CONTEXT.headers()), tuple(unsampled.headers())):
        batch.add(SerializedRecord(1, None, b"value", headers, 10))
    return batch


def test_each_time_that_a_batch_leaves_is_told() -> None:
    sink = Steps()
    trace, batch = make_trace(sink), make_batch()
    batch.attempt_count = 1
    trace.requested([batch])
    batch.attempt_count = 2
    batch.last_failure = MOVED
    trace.requested([batch, ProduceBatch(TopicPartition("orders", 0), 0.0)])
    first, second = sink.steps
    assert (first.step, first.attempt, second.step, second.attempt) == (SENT, 1, RETRIED, 2)
    assert {first.trace_id, second.trace_id} == {CONTEXT.trace_id}
    assert first.details == {"partition": 3, "records": 3, "span_id": CONTEXT.span_id}
    assert second.details["cause"] == "KafkaError: moved"


def test_of_a_batch_that_fails_those_are_told_that_are_not_traced() -> None:
    sink = Steps()
    trace, batch = make_trace(sink), make_batch()
    trace.is_failing(batch)
    assert not sink.steps
    batch.fail(MOVED)
    (step,) = sink.steps
    assert (step.step, step.topic, step.error) == (FAILED, "orders", "KafkaError: moved")
    assert step.trace_id != CONTEXT.trace_id
    assert (step.details["records"], step.details["partition"]) == (2, 3)


def test_headers_in_any_form_are_kept_and_added_to() -> None:
    sink = Steps()
    trace = make_trace(sink, share=1.0)
    forms: list[HeadersLike | None] = [None, (), {"a": "b"}, [("a", b"b")], iter([("a", "b")])]
    for form in forms:
        traced = trace.begin(ProducerRecord("orders", b"value", headers=form), 1)
        assert traced is not None
        headers = traced.record.headers
        assert isinstance(headers, list)
        assert headers[-1] == ("traceparent", traced.context.traceparent)
        assert len(headers) == (2 if form else 1)
    assert [step.step for step in sink.steps] == [CREATED] * len(forms)


def test_what_are_no_headers_is_left_to_the_producer() -> None:
    trace = make_trace(Steps(), share=1.0)
    for wrong in ("text", 5, [1], ["ab"]):
        assert trace.begin(ProducerRecord("orders", headers=wrong), 1) is None  # type: ignore[arg-type]


def test_a_sink_that_fails_costs_no_record() -> None:
    traced = make_trace(BrokenSteps(), share=1.0).begin(ProducerRecord("orders"), 1)
    assert traced is not None
    traced.failed(MOVED)
