"""A record that fails goes round queues of growing delay, and to the dead letters: virtual time.

The notes have it so: Q1 of 5 s, Q2 of 10 s and so on, and then a topic of dead letters for what
cannot be handled, what nobody wants to handle, and what does not meet the requirements.
"""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from headwater.client.consumer.async_consumer import AsyncConsumer
from headwater.client.consumer.record import ConsumerRecord
from headwater.client.environment import ClientEnvironment, in_environment
from headwater.client.producer.async_producer import AsyncProducer
from headwater.delivery import AsyncWorker, DeadLetter, Retry, RetryPolicy
from headwater.sim.broker_world import HOST, PORT, BrokerWorld
from headwater.sim.clients.topic_client import TopicClient

DELAYS = ("5s", "10s", "30s", "1m", "2m")
#: Commits, transactions and reads take their time, after what is due is due.
LATE_S_MAX = 0.5

Handler = Callable[[ConsumerRecord], Any]


class Walk:
    """A worker of the group `billing`, on a broker that nothing befalls."""

    def __init__(self, **settings: Any) -> None:
        self.world = BrokerWorld(7, timer_lateness_ms=0.0)
        self.environment = ClientEnvironment(clock=self.world.clock, generator=random.Random(7))
        self.settings: dict[str, Any] = {
            "retry": RetryPolicy(delays=DELAYS),
            "commit_interval": 0.2,
            **settings,
        }
        self.bootstrap: dict[str, Any] = {"bootstrap_servers": f"{HOST}:{PORT}"}
        #: When each record was handled, and how often it had failed.
        self.times_s: list[float] = []
        self.attempts: list[bytes | None] = []

    def run(
        self,
        value: bytes,
        handler: Handler,
        *,
        retry_configs: Mapping[str, str] | None = None,
    ) -> tuple[float, ConsumerRecord]:
        """Handle one record; tells when it was a dead letter, and which."""

        async def tell() -> tuple[float, ConsumerRecord]:
            assert await self.world.start_broker()
            process, link = self.world.start_client("program")
            work = self._walk(link, value, handler, retry_configs or {})
            return await process.run(self.world.loop.create_task, work)

        try:
            found = self.world.run(tell())
            self.world.check_no_failure()
            return found
        finally:
            self.world.close()

    async def _walk(
        self, link: Any, value: bytes, handler: Handler, retry_configs: Mapping[str, str]
    ) -> tuple[float, ConsumerRecord]:
        admin = TopicClient(link, self.world.history)
        policy: RetryPolicy = self.settings["retry"]
        dead = {"errors.deadletterqueue.group.enable": "true"}
        await admin.create("orders", 1)
        await admin.create("dlq.billing", 1, dead)
        await admin.create("retry.billing", 1, {**policy.topic_configs("billing"), **retry_configs})
        async with in_environment(AsyncProducer, self.environment)(**self.bootstrap) as producer:
            await (await producer.send("orders", value, b"customer"))

        async def handle(record: ConsumerRecord) -> None:
            self.times_s.append(self.world.loop.time())
            self.attempts.append(dict(record.headers).get("headwater-attempts"))
            handler(record)

        worker = in_environment(AsyncWorker, self.environment)(
            "orders", group="billing", handler=handle, **self.bootstrap, **self.settings
        )
        running = asyncio.get_running_loop().create_task(worker.run())
        found = await self._await_dead_letter()
        worker.stop()
        await running
        return found

    async def _await_dead_letter(self) -> tuple[float, ConsumerRecord]:
        async with in_environment(AsyncConsumer, self.environment)(
            **self.bootstrap,
            group_id="on-call",
            auto_offset_reset="earliest",
            isolation_level="read_committed",
        ) as consumer:
            consumer.subscribe(["dlq.billing"])
            async with asyncio.timeout(600):
                while not (records := await consumer.poll(1.0)):
                    pass
            now_s = self.world.loop.time()
            assert not await consumer.poll(5.0)
            assert len(records) == 1
            return now_s, records[0]


def refuse(error: Exception) -> Handler:
    def handle(_: ConsumerRecord) -> None:
        raise error

    return handle


def check_gaps(times_s: list[float], delays_s: list[float]) -> None:
    gaps_s = [later - earlier for earlier, later in itertools.pairwise(times_s)]
    for gap_s, delay_s in zip(gaps_s, delays_s, strict=True):
        assert delay_s <= gap_s <= delay_s + LATE_S_MAX


def test_what_cannot_be_handled_walks_through_all_queues() -> None:
    walk = Walk()
    dead_s, letter = walk.run(b"order", refuse(OSError("the bank is away")))
    # Q1 5 s, Q2 10 s, Q3 30 s, Q4 1 min, Q5 2 min, and then it is a dead letter.
    check_gaps([*walk.times_s, dead_s], [5, 10, 30, 60, 120, 0])
    assert walk.attempts == [None, b"1", b"2", b"3", b"4", b"5"]
    headers = dict(letter.headers)
    assert (letter.key, letter.value) == (b"customer", b"order")
    assert headers["headwater-origin"] == b"orders-0@0"
    assert headers["headwater-attempts"] == b"6"
    assert headers["headwater-error"] == b"the bank is away"
    assert headers["headwater-error-class"] == b"OSError"
    assert headers["__dlq.errors.topic"] == b"orders"
    assert headers["__dlq.errors.group"] == b"billing"


def test_a_handler_may_ask_for_another_time() -> None:
    walk = Walk(retry=RetryPolicy(delays=["5s", "10s"]))
    dead_s, _ = walk.run(b"order", refuse(Retry("closed", after="90s")))
    check_gaps([*walk.times_s, dead_s], [90, 90, 0])


def test_a_longer_time_than_the_topic_allows_is_the_longest_that_it_does() -> None:
    walk = Walk(retry=RetryPolicy(delays=["5s"]))
    longest = {"delay.max.ms": "120000"}
    dead_s, letter = walk.run(b"order", refuse(Retry("closed", after="90d")), retry_configs=longest)
    check_gaps([*walk.times_s, dead_s], [120, 0])
    assert (letter.key, letter.value) == (b"customer", b"order")


def test_what_is_too_large_with_its_stack_goes_without_it() -> None:
    walk = Walk(retry=RetryPolicy(delays=["5s"]))
    dead_s, letter = walk.run(
        random.Random(1).randbytes(9_500),
        refuse(OSError("away")),
        retry_configs={"max.message.bytes": "10000"},
    )
    check_gaps([*walk.times_s, dead_s], [5, 0])
    assert (letter.key, len(letter.value)) == (b"customer", 9_500)
    headers = dict(letter.headers)
    assert headers["headwater-error"] == b"away"
    assert "headwater-error-stack" not in headers


def test_with_order_kept_the_walk_is_the_same() -> None:
    walk = Walk(keep_order=True)
    dead_s, letter = walk.run(b"order", refuse(OSError("away")))
    check_gaps([*walk.times_s, dead_s], [5, 10, 30, 60, 120, 0])
    headers = dict(letter.headers)
    assert headers["headwater-dead"] == b"It failed 6 times: away"
    assert headers["headwater-attempts"] == headers["__dlq.errors.delivery.count"] == b"6"


@pytest.mark.parametrize(
    ("error", "reason"),
    [(DeadLetter("a negative total"), b"a negative total"), (KeyError("total"), b"'total'")],
)
def test_what_will_not_be_handled_is_a_dead_letter_at_once(error: Exception, reason: bytes) -> None:
    walk = Walk(hopeless=KeyError)
    dead_s, letter = walk.run(b"order", refuse(error))
    check_gaps([*walk.times_s, dead_s], [0])
    headers = dict(letter.headers)
    assert headers["headwater-dead"] == headers["headwater-error"] == reason
    assert headers["headwater-attempts"] == b"1"


def test_what_cannot_be_read_is_a_dead_letter_with_its_bytes() -> None:
    walk = Walk(value_deserializer=lambda value: value.decode("ascii"))
    _, letter = walk.run(b"\xff\xfe", refuse(AssertionError("it was handled")))
    assert walk.times_s == []
    assert (letter.key, letter.value) == (b"customer", b"\xff\xfe")
    assert b"cannot be deserialized" in (dict(letter.headers)["headwater-dead"] or b"")


def test_what_is_too_large_is_a_dead_letter_that_says_where_it_is() -> None:
    walk = Walk()
    _, letter = walk.run(
        random.Random(1).randbytes(20_000),
        refuse(OSError("away")),
        retry_configs={"max.message.bytes": "10000"},
    )
    assert len(walk.times_s) == 1
    assert (letter.key, letter.value) == (None, None)
    headers = dict(letter.headers)
    assert headers["headwater-origin"] == b"orders-0@0"
    assert b"The retry topic refused it" in (headers["headwater-dead"] or b"")
