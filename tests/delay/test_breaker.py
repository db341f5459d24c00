"""The breaker of a retry topic as its users meet it: it speaks, and pauses them where asked to."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from headwater import Consumer, ConsumerRecord, KafkaError, Producer, TopicPartition
from headwater.broker.metrics.dead_letter_metrics import dead_letter_metrics
from headwater.delivery import DeadLetter, Worker
from headwater.delivery.worker.options import WorkerOptions
from headwater.testing import broker
from headwater.testing.running_broker import RunningBroker
from headwater.wire.records import Record, encode_batch
from tests.support.brokers.handler_broker import HandlerBroker, run_with_broker
from tests.support.metric_figures import figure, read
from tests.support.waiting import eventually

DEAD = [("headwater-dead", b"nonsense")]
ALLOWED = {"errors.deadletterqueue.group.enable": "true"}


@pytest.fixture(scope="module")
def running() -> Iterator[RunningBroker]:
    with broker() as started:
        yield started


def retry_topic(running: RunningBroker, group: str, window_ms: int) -> str:
    running.create_topic(f"dlq.{group}", configs=ALLOWED)
    configs = {
        "delay.mode": "retry",
        "retry.delays": "100ms",
        "retry.dead.letter.topic": f"dlq.{group}",
        "retry.breaker.letters": "3",
        "retry.breaker.window.ms": str(window_ms),
        "retry.breaker.pause": "true",
    }
    return running.create_topic(f"retry.{group}", configs=configs)


def count(running: RunningBroker, topic: str) -> int:
    place = TopicPartition(topic, 0)
    with Consumer(bootstrap_servers=running.bootstrap, isolation_level="read_committed") as found:
        found.assign([place])
        found.seek_to_beginning([place])
        end, records = found.end_offsets([place])[place], 0
        while found.position(place) < end:
            records += len(found.poll(0.2))
    return records


def test_whoever_gives_up_too_much_stands_still_until_the_breaker_closes(
    running: RunningBroker,
) -> None:
    window_ms = 3000
    retry = retry_topic(running, "billing", window_ms)
    with (
        Producer(bootstrap_servers=running.bootstrap) as producer,
        Producer(
            bootstrap_servers=running.bootstrap, delivery_timeout_ms=700, request_timeout_ms=600
        ) as hasty,
    ):
        begun_s = time.monotonic()
        for _ in range(3):
            producer.send(retry, b"letter", headers=DEAD).result()
        with pytest.raises(KafkaError, match=r"The breaker of retry\.billing-0 is open"):
            hasty.send(retry, b"hasty", headers=DEAD).result()
        # What is tried again goes on.
        producer.send(retry, b"again").result()
        producer.send(retry, b"patient", headers=DEAD).result()
        assert time.monotonic() - begun_s >= window_ms / 1000
    assert eventually(lambda: count(running, "dlq.billing") == 4)


def test_a_worker_that_is_paused_says_why_and_goes_on_by_itself(
    running: RunningBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    of_product = WorkerOptions.producer_config
    soon = {"request.timeout.ms": 500, "delivery.timeout.ms": 600}
    monkeypatch.setattr(
        WorkerOptions, "producer_config", lambda self, unique: of_product(self, unique) | soon
    )
    retry_topic(running, "shop", 5_000)
    running.create_topic("orders")
    handled = []

    def handle(record: ConsumerRecord) -> None:
        handled.append(record.value)
        raise DeadLetter("nonsense")

    with Producer(bootstrap_servers=running.bootstrap) as producer:
        worker = Worker(
            *("orders",),
            group="shop",
            handler=handle,
            bootstrap_servers=running.bootstrap,
            commit_interval=0.05,
            circuit_failure_ratio=1,
        )
        thread = threading.Thread(target=worker.run)
        thread.start()
        try:
            for number in range(3):
                producer.send("orders", b"%d" % number).result()
            assert eventually(lambda: worker.metrics().dead_count == 3)
            producer.send("orders", b"one too many").result()
            assert eventually(lambda: "is open" in worker.health().reason)
            assert not worker.health().is_healthy
            producer.send("orders", b"not read now").result()
            assert eventually(lambda: worker.metrics().dead_count == 5)
            assert worker.health().is_healthy
        finally:
            worker.stop()
            thread.join(30)
    assert sorted(set(handled)) == [b"0", b"1", b"2", b"not read now", b"one too many"]


def test_it_speaks_by_default_and_refuses_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await broker.create_topic("dlq", configs=ALLOWED)
        configs = {"delay.mode": "retry", "retry.dead.letter.topic": "dlq"}
        await broker.create_topic("retry.billing", configs=configs)
        partition = broker.context.partitions.get("retry.billing", 0)
        ((_, delays),) = broker.context.delays
        letter = Record(0, 1, None, b"v", (("headwater-dead", b"nonsense"),))
        while delays.known_state is None:
            await asyncio.sleep(0.01)
        for _ in range(2):
            batch = encode_batch([letter._replace(offset=number) for number in range(60)])
            partition.append(batch, acks=1, now_ms=broker.context.clock.wall_ms())
        while not delays.breaker.is_open(broker.context.clock.wall_ms()):
            await asyncio.sleep(0.01)
        partition.append(encode_batch([letter]), acks=1, now_ms=broker.context.clock.wall_ms())
        figures = read(dead_letter_metrics(broker.context, 10))
        assert figure(figures, "headwater_retry_breakers_open", topic="retry.billing") == 1

    with caplog.at_level(logging.WARNING):
        run_with_broker(tmp_path, scenario)
    assert (
        "The breaker of retry.billing-0 is open: 100 records or more were given up within 1m."
        in caplog.messages
    )
