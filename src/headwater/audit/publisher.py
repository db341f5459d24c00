"""Counts what this broker leads, and publishes it to `__audit` every bucket interval.

Nothing is done when records are appended or offsets committed. Once a second it is noted where logs
end, so that it is known when records came. Once an interval the headers of what is new are read, in
threads and a slice at a time, and what they say is sent to the leaders of `__audit`, which take
each stretch once (`shard`). Whoever leads a partition next asks them where to go on.

What cannot be published is kept as counts, within a bound, and tried again with the next interval;
behind the bound nothing is read, and the log keeps it. `__audit` is made when there is something to
publish for the first time, so a broker without traffic has none.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from headwater.audit.commit_counts import OutsideCommits
from headwater.audit.rows import OFFSETS_TOPIC
from headwater.audit.shard import Published, Stretch
from headwater.audit.source import Source
from headwater.base.background_tasks import BackgroundTasks
from headwater.base.clocks import Clock
from headwater.base.errors import KafkaError
from headwater.base.threads import RunInThread
from headwater.cluster.image.image import is_brokers_own
from headwater.replication.partition.partition import Partition

_logger = logging.getLogger(__name__)

_LOOK_INTERVAL_S: Final = 1.0
#: A stretch is published by itself if it is large; small ones go together.
_REQUEST_BYTES_MAX: Final = 256 << 10
_QUESTIONS_MAX: Final = 1_000
#: So often more is published at once of what one stretch cannot tell.
_ROUNDS_MAX: Final = 100


class AuditWay(Protocol):
    """The way to the leaders of `__audit`, wherever they are."""

    async def ensure_topic(self) -> int:
        """How many partitions `__audit` has; it is made if it is not there. Raises `KafkaError`."""
        ...

    def partition_of(self, source: str, partition_count: int) -> int:
        """The partition of `__audit` that a source belongs to."""
        ...

    async def publish(self, partition: int, stretches: Sequence[Stretch]) -> dict[str, Published]:
        """Up to where each source is published now. Raises `KafkaError`."""
        ...


@dataclass(frozen=True, slots=True)
class AuditOptions:
    """What settings say, read when it counts."""

    is_enabled: Callable[[], bool]
    bucket_ms: Callable[[], int]
    retention_ms: Callable[[], int]


@dataclass(frozen=True, slots=True)
class AuditEnvironment:
    partitions: Iterable[Partition]
    way: AuditWay
    clock: Clock
    run_in_thread: RunInThread
    tasks: BackgroundTasks
    #: How this broker is called in rows.
    host: str
    #: Takes what a partition of `__consumer_offsets` knows of commits that no member made.
    take_outside_commits: Callable[[int], OutsideCommits]


class AuditPublisher:
    """`start`, then it works until `close`; the owner is the broker's event loop."""

    def __init__(self, environment: AuditEnvironment, options: AuditOptions) -> None:
        self._environment = environment
        self._options = options
        self._sources: dict[Partition, Source] = {}
        self._task: asyncio.Task[None] | None = None
        self._trouble = ""
        #: When the interval is over, by the monotonic clock.
        self._due_ms: float | None = None
        #: Plain counters, which metrics read when somebody asks.
        self.published_rows = 0
        self.published_records = 0
        self.failed_rounds = 0

    @property
    def behind_offsets(self) -> int:
        """How many offsets of what this broker leads are not published yet."""
        return sum(source.behind_offsets for source in self._sources.values())

    def start(self) -> None:
        self._task = self._environment.tasks.start("audit", self._run())

    async def close(self) -> None:
        """What is not published the next leader counts."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(_LOOK_INTERVAL_S)
            await self.turn()

    async def turn(self) -> None:
        """What is done once a second: look, and publish if an interval is over."""
        clock, bucket_ms = self._environment.clock, self._options.bucket_ms()
        if self._due_ms is None:
            self._due_ms = clock.monotonic_ms() + bucket_ms
        if not self._options.is_enabled():
            self._forget()
            self._due_ms = None
            return
        self.look()
        if clock.monotonic_ms() >= self._due_ms:
            self._due_ms = clock.monotonic_ms() + bucket_ms
            await self.publish_all()

    def _forget(self) -> None:
        for source in self._sources.values():
            source.partition.client_ids = None
        self._sources.clear()

    # -- looking ---------------------------------------------------------------------------------

    def look(self) -> None:
        """Note which partitions are led here, where their logs end and are replicated up to."""
        now_ms = self._environment.clock.wall_ms()
        sources = self._sources
        for partition in self._environment.partitions:
            source = sources.get(partition)
            if source is None or source.leader_epoch != partition.leader_epoch:
                if not partition.is_leader or not _is_audited(partition):
                    continue
                source = sources[partition] = Source(partition, self._environment.host)
            log = partition.log
            source.times.note(log.log_end_offset, log.high_watermark, now_ms)
            source.log_starts.note(log.log_start_offset, now_ms)
        for partition in [each for each, source in sources.items() if not source.is_current]:
            partition.client_ids = None
            del sources[partition]

    # -- publishing ------------------------------------------------------------------------------

    async def publish_all(self) -> None:
        """Count and publish what is new; what fails is told once, and tried again next time."""
        busy = [each for each in self._sources.values() if each.has_more or each.has_untold]
        try:
            for _ in range(_ROUNDS_MAX):
                if not busy:
                    break
                busy = await self._publish(busy)
        except (KafkaError, OSError) as error:
            self.failed_rounds += 1
            if str(error) != self._trouble:
                self._trouble = str(error)
                _logger.warning("The audit cannot be published just now: %s", error)
        else:
            self._trouble = ""

    async def _publish(self, busy: list[Source]) -> list[Source]:
        """Those that have more than was told at once."""
        way = self._environment.way
        partition_count = await way.ensure_topic()
        by_home: dict[int, list[Source]] = {}
        for source in busy:
            home = way.partition_of(source.name, partition_count)
            by_home.setdefault(home, []).append(source)
        failures: list[KafkaError | OSError] = []
        left: list[Source] = []
        for home, sources in sorted(by_home.items()):
            try:
                left += await self._publish_to(home, sources)
            except (KafkaError, OSError) as error:
                failures.append(error)  # The others go on.
        if failures:
            raise failures[0]
        return left

    async def _publish_to(self, home: int, sources: list[Source]) -> list[Source]:
        clock = self._environment.clock
        await self._begin(home, [each for each in sources if each.counts is None])
        waiting: list[Source] = []
        stretches: list[Stretch] = []
        left: list[Source] = []
        size_bytes = 0
        for source in sources:
            await self._count(source)
            if not source.is_current:
                continue
            if source.is_commits:
                number = source.partition.topic_partition.partition
                source.add_outside_commits(self._environment.take_outside_commits(number))
            was_full = source.is_full
            stretch = source.stretch(clock.wall_ms(), self._options.bucket_ms())
            if stretch is None:
                continue
            if was_full or source.is_counted:
                left.append(source)
            waiting.append(source)
            stretches.append(stretch)
            size_bytes += sum(len(key) + len(value) for key, value in stretch.records)
            if size_bytes >= _REQUEST_BYTES_MAX:
                await self._send(home, waiting, stretches)
                waiting, stretches, size_bytes = [], [], 0
        if stretches:
            await self._send(home, waiting, stretches)
        return left

    async def _begin(self, home: int, sources: list[Source]) -> None:
        """Learn where others stopped."""
        bucket_ms = self._options.bucket_ms()
        now_ms = self._environment.clock.wall_ms()
        oldest_ms = now_ms - self._options.retention_ms()
        for first in range(0, len(sources), _QUESTIONS_MAX):
            some = sources[first : first + _QUESTIONS_MAX]
            questions = [Stretch(each.name, -1, -1, ()) for each in some]
            published = await self._environment.way.publish(home, questions)
            for source in some:
                if source.name in published:
                    source.begin(published[source.name], bucket_ms, oldest_ms, now_ms)

    async def _count(self, source: Source) -> None:
        """Read on; after each slice the processor belongs to others for as long as it took."""
        clock = self._environment.clock
        has_more = True
        while has_more and source.is_current:
            begun_ms = clock.monotonic_ms()
            has_more = await source.count_slice(self._environment.run_in_thread)
            if has_more:
                await asyncio.sleep((clock.monotonic_ms() - begun_ms) / 1000)

    async def _send(self, home: int, sources: list[Source], stretches: list[Stretch]) -> None:
        published = await self._environment.way.publish(home, stretches)
        for source, stretch in zip(sources, stretches, strict=True):
            known = published.get(source.name)
            if known is not None and known.offset == stretch.to_offset:
                self.published_rows += len(stretch.records)
                self.published_records += source.published()
            else:
                source.refused()


def _is_audited(partition: Partition) -> bool:
    topic = partition.topic_partition.topic
    return topic == OFFSETS_TOPIC or not is_brokers_own(topic)
