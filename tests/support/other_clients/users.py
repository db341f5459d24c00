"""What tests of the client need again and again when they use it as its users do."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from headwater import Admin, Consumer, ConsumerRecord, NewTopic, TopicPartition
from headwater.client.admin import require_all

WAIT_S = 30.0

Values = list[bytes | None]


def create_topic(bootstrap: str, name: str, partition_count: int = 1, **configs: str) -> str:
    """A topic that exists; settings have underscores for dots."""
    settings = {key.replace("_", "."): value for key, value in configs.items()}
    with Admin(bootstrap_servers=bootstrap) as admin:
        new = NewTopic(name, partition_count=partition_count, configs=settings)
        require_all(admin.create_topics([new]))
    return name


def partitions_of(topic: str, count: int) -> list[TopicPartition]:
    return [TopicPartition(topic, number) for number in range(count)]


def take(consumer: Consumer, count: int, timeout_s: float = WAIT_S) -> list[ConsumerRecord]:
    """Poll until so many records have come; more than those are an error of the caller's."""
    found: list[ConsumerRecord] = []
    deadline_s = time.monotonic() + timeout_s
    while len(found) < count:
        assert time.monotonic() < deadline_s, f"only {len(found)} of {count} records came"
        found += consumer.poll(0.1)
    return found


def read_all(
    bootstrap: str, topic: str, partition_count: int = 1, isolation_level: str = "read_uncommitted"
) -> list[ConsumerRecord]:
    """Everything that lies in the topic now, partition by partition."""
    partitions = partitions_of(topic, partition_count)
    with Consumer(
        {"isolation.level": isolation_level},
        bootstrap_servers=bootstrap,
        auto_offset_reset="earliest",
    ) as consumer:
        consumer.assign(partitions)
        ends = consumer.end_offsets(partitions)
        found: list[ConsumerRecord] = []
        deadline_s = time.monotonic() + WAIT_S
        while any(consumer.position(each) < end for each, end in ends.items()):
            assert time.monotonic() < deadline_s, f"only {len(found)} records came"
            found += consumer.poll(0.1)
    return sorted(found, key=lambda record: (record.partition, record.offset))


def values_of(records: Iterable[ConsumerRecord]) -> Values:
    return [record.value for record in records]


def numbers(start: int, stop: int) -> list[bytes]:
    return [b"%d" % number for number in range(start, stop)]


class Poller:
    """A consumer that a thread of its own polls, until it is closed or its polling has failed."""

    def __init__(self, consumer: Consumer) -> None:
        self.consumer = consumer
        self.records: list[ConsumerRecord] = []
        self.owned: frozenset[TopicPartition] = frozenset()
        self.error: BaseException | None = None
        self._is_ending = threading.Event()
        self._thread = threading.Thread(target=self._poll, name="poller")
        self._thread.start()

    def close(self, *, leaves: bool = True) -> None:
        """Stop polling; leave the group too unless told otherwise."""
        self._is_ending.set()
        self._thread.join(WAIT_S)
        assert not self._thread.is_alive(), "the poller does not end"
        if leaves:
            self.consumer.close()

    def wait(self, condition: Callable[[Poller], bool], what: str) -> None:
        wait_for(lambda: self._check() or condition(self), what)

    def _check(self) -> bool:
        if self.error is not None:
            raise self.error
        return False

    def _poll(self) -> None:
        try:
            while not self._is_ending.is_set():
                self.records += self.consumer.poll(0.05)
                self.owned = frozenset(self.consumer.assignment())
        except BaseException as error:
            self.error = error


@contextmanager
def pollers(consumers: Sequence[Consumer]) -> Iterator[list[Poller]]:
    """All of them polled at once, and closed at the end."""
    started = [Poller(consumer) for consumer in consumers]
    try:
        yield started
    finally:
        for poller in started:
            poller.close()


def shared_among(members: Sequence[Poller], partitions: Iterable[TopicPartition]) -> bool:
    """Whether the members own all of these, each one once, and nobody is without."""
    for member in members:
        if member.error is not None:
            raise member.error
    owned = [member.owned for member in members]
    return sorted(each for some in owned for each in some) == sorted(partitions) and all(owned)


def wait_for(condition: Callable[[], bool], what: str, timeout_s: float = WAIT_S) -> None:
    deadline_s = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline_s, f"not within {timeout_s:g} s: {what}"
        time.sleep(0.01)
