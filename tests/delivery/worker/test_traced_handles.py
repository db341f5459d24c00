"""A worker that traces tells of each attempt, and of the way by the retry topic."""

import asyncio
import itertools
from collections.abc import Iterator

import pytest

from headwater.client.consumer.record import ConsumerRecord
from headwater.client.producer.producer import Producer
from headwater.client.tracing.trace_context import TraceContext, current_trace
from headwater.client.tracing.trace_step import COMMITTED, FETCHED, HANDLED
from headwater.delivery.worker.async_worker import AsyncWorker
from headwater.delivery.worker.policy import RetryPolicy
from headwater.delivery.worker.worker import Worker
from headwater.testing.running_broker import RunningBroker
from tests.support.traffic.traces import read_traces

_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    settings = {"trace.sample": "1.0", "log.initial.task.delay.ms": "100"}
    with RunningBroker(tmp_path_factory.mktemp("broker"), settings=settings) as broker:
        yield broker.bootstrap


def send(bootstrap: str, topic: str) -> str:
    with Producer({"bootstrap.servers": bootstrap, "trace.enable": True}) as producer:
        return str(producer.send(topic, b"value").result(30).message_id)


class Flaky:
    """Fails at first, and ends its worker after a success."""

    def __init__(self) -> None:
        self.worker: Worker | AsyncWorker | None = None
        self.contexts: list[TraceContext | None] = []

    def handle(self, record: ConsumerRecord) -> None:
        self.contexts.append(current_trace())
        if len(self.contexts) == 1:
            raise ValueError("no")
        assert self.worker is not None
        self.worker.stop()

    async def handle_in_task(self, record: ConsumerRecord) -> None:
        await asyncio.sleep(0)
        self.handle(record)


@pytest.mark.parametrize("concurrency", [1, 3])
@pytest.mark.parametrize("is_async", [False, True])
def test_attempts_of_a_worker(bootstrap: str, is_async: bool, concurrency: int) -> None:
    topic = f"orders-{next(_numbers)}"
    message_id = send(bootstrap, topic)
    flaky = Flaky()
    kind = AsyncWorker if is_async else Worker
    worker = kind(
        topic,
        group=f"group-{topic}",
        handler=flaky.handle_in_task if is_async else flaky.handle,
        config={"bootstrap.servers": bootstrap, "trace.enable": True},
        retry=RetryPolicy(delays=["10ms"]),
        create_topics=True,
        concurrency=concurrency,
        commit_interval=0.05,
    )
    flaky.worker = worker
    if isinstance(worker, AsyncWorker):
        asyncio.run(worker.run())
    else:
        worker.run(handle_signals=False)
    first, second = flaky.contexts
    assert first is not None
    assert second is not None
    assert first.trace_id == second.trace_id
    steps = [
        step
        for step in read_traces(bootstrap).of_message(message_id)
        if step.step in (FETCHED, HANDLED, COMMITTED)
    ]
    here = [step for step in steps if step.topic == topic]
    there = [step for step in steps if step.topic == f"retry.group-{topic}"]
    assert [step.step for step in here] == [FETCHED, HANDLED, COMMITTED]
    assert [step.step for step in there] == [FETCHED, HANDLED, COMMITTED]
    assert (here[1].error, there[1].error) == ("ValueError: no", None)
    assert [step.attempt for step in there[:2]] == [2, 2]
    assert {step.details.get("origin") for step in there[:2]} == {message_id}
