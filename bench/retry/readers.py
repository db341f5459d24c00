"""Who reads a topic while workers are compared: a worker, or the loop that it replaces.

Each run is a process and a group of its own. The clock runs from the first record that a handler
gets to the last one: joining a group is not what is compared. Both sides call the same handler and
commit twice a second.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from bench import job_process

COMMIT_S = 0.5
#: As many as a worker takes with a poll.
_POLL_RECORDS = 500
_MODULE = "bench.retry.readers"

Handler = Callable[[Any], Any]


def run_reader(kind: str, **arguments: object) -> float:
    """Records a second of such a reader, in a process of its own."""
    found: float = job_process.run_job(_MODULE, kind, **arguments)
    return found


@dataclass(slots=True)
class Tally:
    """Counts records, by any number of threads, and tells when all have come."""

    record_count: int
    #: For how long a handler waits, as one does that asks a database.
    wait_s: float = 0.0
    on_last: Callable[[], None] = lambda: None
    is_done: bool = False
    _begun_s: float = 0.0
    _ended_s: float = 0.0
    _numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    def handler(self) -> Handler:
        """Does next to nothing, or waits: what remains is what is compared."""
        numbers, last = self._numbers, self.record_count
        wait_s = self.wait_s

        def handle(_record: object) -> None:
            number = next(numbers)
            if number == 1:
                self._begun_s = time.perf_counter()
            if wait_s:
                time.sleep(wait_s)
            if number == last:
                self._end()

        return handle

    def async_handler(self) -> Handler:
        """The same as a coroutine function."""
        numbers, last = self._numbers, self.record_count
        wait_s = self.wait_s

        async def handle(_record: object) -> None:
            number = next(numbers)
            if number == 1:
                self._begun_s = time.perf_counter()
            if wait_s:
                await asyncio.sleep(wait_s)
            if number == last:
                self._end()

        return handle

    def _end(self) -> None:
        self._ended_s = time.perf_counter()
        self.is_done = True
        self.on_last()

    @property
    def records_per_s(self) -> float:
        return self.record_count / (self._ended_s - self._begun_s)


def read_plainly(
    bootstrap: str, topic: str, group: str, record_count: int, wait_s: float = 0.0
) -> float:
    """The loop that everybody writes."""
    from headwater import Consumer

    tally = Tally(record_count, wait_s)
    handle = tally.handler()
    with Consumer(_consumer_settings(bootstrap, group)) as consumer:
        consumer.subscribe([topic])
        commit_at_s = time.monotonic() + COMMIT_S
        while not tally.is_done:
            for record in consumer.poll(COMMIT_S, _POLL_RECORDS):
                handle(record)
            if time.monotonic() >= commit_at_s:
                consumer.commit()
                commit_at_s = time.monotonic() + COMMIT_S
    return tally.records_per_s


def read_plainly_on_loop(
    bootstrap: str, topic: str, group: str, record_count: int, wait_s: float = 0.0
) -> float:
    from headwater import AsyncConsumer

    tally = Tally(record_count, wait_s)
    handle = tally.async_handler()

    async def read() -> None:
        async with AsyncConsumer(_consumer_settings(bootstrap, group)) as consumer:
            consumer.subscribe([topic])
            commit_at_s = time.monotonic() + COMMIT_S
            while not tally.is_done:
                for record in await consumer.poll(COMMIT_S, _POLL_RECORDS):
                    await handle(record)
                if time.monotonic() >= commit_at_s:
                    await consumer.commit()
                    commit_at_s = time.monotonic() + COMMIT_S

    asyncio.run(read())
    return tally.records_per_s


def work(
    bootstrap: str,
    topic: str,
    group: str,
    record_count: int,
    wait_s: float = 0.0,
    concurrency: int = 1,
) -> float:
    from headwater.delivery import Worker

    tally = Tally(record_count, wait_s)
    worker = Worker(
        [topic],
        group=group,
        handler=tally.handler(),
        bootstrap_servers=bootstrap,
        concurrency=concurrency,
        commit_interval=COMMIT_S,
        create_topics=True,
    )
    tally.on_last = worker.stop
    worker.run()
    return tally.records_per_s


def work_on_loop(
    bootstrap: str,
    topic: str,
    group: str,
    record_count: int,
    wait_s: float = 0.0,
    concurrency: int = 1,
) -> float:
    from headwater.delivery import AsyncWorker

    tally = Tally(record_count, wait_s)

    async def run() -> None:
        worker = AsyncWorker(
            [topic],
            group=group,
            handler=tally.async_handler(),
            bootstrap_servers=bootstrap,
            concurrency=concurrency,
            commit_interval=COMMIT_S,
            create_topics=True,
        )
        tally.on_last = worker.stop
        await worker.run()

    asyncio.run(run())
    return tally.records_per_s


def _consumer_settings(bootstrap: str, group: str) -> dict[str, object]:
    """What a worker gives to its consumer."""
    return {
        "bootstrap.servers": bootstrap,
        "group.id": group,
        "isolation.level": "read_committed",
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
    }


JOBS: dict[str, Callable[..., float]] = {
    "consumer": read_plainly,
    "async-consumer": read_plainly_on_loop,
    "worker": work,
    "async-worker": work_on_loop,
}

if __name__ == "__main__":
    job_process.answer(JOBS)
