"""A producer that writes numbers in order while something happens to the cluster.

    with SteadyWriter(producer, topic, 3) as writer:
        cluster.brokers[leader].kill()
    writer.check(read_all(bootstrap, topic, 3))

Each partition gets 0, 1, 2 and so on. What idempotence protects is that exactly these are there
afterwards, in this order, each once.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from types import TracebackType
from typing import Self

from headwater import ConsumerRecord, Producer

PAUSE_S = 0.005
BURST_COUNT = 10
FLUSH_TIMEOUT_S = 90.0


class SteadyWriter:
    """Writes from the moment it is entered; at the end all of it must have been acknowledged."""

    def __init__(self, producer: Producer, topic: str, partition_count: int = 1) -> None:
        self._producer = producer
        self._topic = topic
        #: How many were sent to each partition.
        self.counts = dict.fromkeys(range(partition_count), 0)
        self.error: BaseException | None = None
        self._acknowledged = 0
        self._is_ending = threading.Event()
        self._thread = threading.Thread(target=self._write, name="steady-writer")

    @property
    def acknowledged_count(self) -> int:
        return self._acknowledged

    def wait_for_more(self, count: int = 200, timeout_s: float = 60.0) -> None:
        """Until so many more than now have been acknowledged."""
        goal = self._acknowledged + count
        deadline_s = time.monotonic() + timeout_s
        while self._acknowledged < goal:
            if self.error is not None:
                raise self.error
            assert time.monotonic() < deadline_s, (
                f"{goal - self._acknowledged} of {count} records are not acknowledged after "
                f"{timeout_s:g} s"
            )
            time.sleep(PAUSE_S)

    def check(self, records: Iterable[ConsumerRecord]) -> None:
        """These records are what was written, in order, each once."""
        found: dict[int, list[int]] = {partition: [] for partition in self.counts}
        for record in records:
            found[record.partition].append(int(record.value or b"-1"))
        for partition, count in self.counts.items():
            assert found[partition] == list(range(count)), f"partition {partition}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._is_ending.set()
        self._thread.join(FLUSH_TIMEOUT_S)
        if kind is None:
            assert not self._thread.is_alive(), "a send still blocks"
            if self.error is not None:
                raise self.error
            self._producer.flush(FLUSH_TIMEOUT_S)
            if self.error is not None:
                raise self.error
            assert self._acknowledged == sum(self.counts.values())

    def _write(self) -> None:
        try:
            while not self._is_ending.is_set() and self.error is None:
                for _ in range(BURST_COUNT):
                    for partition, count in self.counts.items():
                        self._producer.send(
                            self._topic,
                            b"%d" % count,
                            partition=partition,
                            on_delivery=self._delivered,
                        )
                        self.counts[partition] = count + 1
                time.sleep(PAUSE_S)
        except BaseException as error:
            self.error = error

    def _delivered(self, _metadata: object, error: BaseException | None) -> None:
        if error is not None:
            self.error = error
        else:
            self._acknowledged += 1
