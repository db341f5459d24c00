"""What is published of a partition against a model, whatever order things happen in."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import TypeVar

from hypothesis import given
from hypothesis import strategies as st

from headwater.audit.append_times import AppendTimes
from headwater.audit.batch_counts import OTHER, PRODUCERS_MAX, BatchCounts
from headwater.audit.rows import Row, decode_row
from headwater.audit.shard import AuditShard, Published, Stretch
from headwater.audit.source import Source
from headwater.audit.topic_book import make_book
from headwater.coordinator.stored_record import StoredRecord
from headwater.sim.campaigns.logs import PARTITION
from headwater.storage.producers.entry import AppendOrigin
from headwater.wire.records import (
    ControlType,
    Record,
    encode_batch,
    encode_end_transaction_marker,
    read_batch_header,
)
from tests.support.audit.audit_rows import check_stretches
from tests.support.models.led_partition import LedPartition

BUCKET_MS = 1_000
PRODUCERS = (11, 12)

T = TypeVar("T")


async def at_once(work: Callable[[], T]) -> T:
    return work()


class World:
    """A partition with its leaders' sources, a shard of `__audit`, and what should be told."""

    def __init__(self) -> None:
        self.led = LedPartition(followers=())
        self.shard = AuditShard()
        self.stored: list[StoredRecord] = []
        self.expected: Counter[int] = Counter()
        self.aborted: Counter[int] = Counter()
        self.open: dict[int, list[tuple[int, int]]] = {}
        self.sequences: Counter[int] = Counter()
        self.sources = [Source(self.led.partition, "broker-0")]
        self.refused_count = 0

    def append(self, times: list[int], producer_id: int = -1) -> None:
        is_transactional = producer_id >= 0
        batch = encode_batch(
            [Record(number, time_ms, b"k", b"v") for number, time_ms in enumerate(times)],
            producer_id=producer_id,
            producer_epoch=0 if is_transactional else -1,
            base_sequence=self.sequences[producer_id] if is_transactional else -1,
            transactional=is_transactional,
        )
        self.led.partition.append(bytearray(batch), acks=1, now_ms=self.led.clock.wall_ms())
        bucket = max(times) // BUCKET_MS * BUCKET_MS
        self.expected[bucket] += len(times)
        if is_transactional:
            self.sequences[producer_id] += len(times)
            self.open.setdefault(producer_id, []).append((bucket, len(times)))

    def end(self, producer_id: int, *, is_commit: bool) -> None:
        batches = self.open.pop(producer_id, None)
        if batches is None:
            return
        marker = encode_end_transaction_marker(
            ControlType.COMMIT if is_commit else ControlType.ABORT,
            producer_id=producer_id,
            producer_epoch=0,
            coordinator_epoch=0,
            timestamp_ms=self.led.clock.wall_ms(),
        )
        self.led.partition.append(
            bytearray(marker),
            acks=1,
            now_ms=self.led.clock.wall_ms(),
            origin=AppendOrigin.COORDINATOR,
        )
        if not is_commit:
            for bucket, count in batches:
                self.aborted[bucket] += count

    def roll(self) -> None:
        log = self.led.partition.log
        if log.segments.active.size_bytes:
            log.roll(self.led.clock.wall_ms())

    def publish(self, number: int = -1, *, is_answered: bool = True) -> None:
        source = self.sources[number % len(self.sources)]
        if source.counts is None:
            (published,) = self._tell(Stretch(source.name, -1, -1, ()))
            source.begin(published, BUCKET_MS, 0, 1)
        asyncio.run(self._count(source))
        stretch = source.stretch(1, BUCKET_MS)
        if stretch is None:
            return
        (published,) = self._tell(stretch)
        if not is_answered:
            return
        if published.offset == stretch.to_offset:
            source.published()
        else:
            source.refused()

    async def _count(self, source: Source) -> None:
        while await source.count_slice(at_once):
            pass

    def _tell(self, stretch: Stretch) -> list[Published]:
        change = self.shard.publish([stretch])
        for record in change.records:
            self.stored.append(record)
            self.shard.replay(record, len(self.stored), None, 0)
        return change.response

    def change_leader(self) -> None:
        """The old one does not know, and may go on for a while."""
        self.sources.append(Source(self.led.partition, f"broker-{len(self.sources)}"))

    def move_shard(self) -> None:
        shard = AuditShard()
        for record in self.stored:
            shard.replay(record, 0, None, 0)
        assert shard.stored_state() == self.shard.stored_state()
        self.shard = shard

    def refuse(self) -> None:
        self.led.partition.gaps_refused += 1
        self.refused_count += 1

    def delete_what_is_told(self) -> None:
        told = max((row["to_offset"] for row in self.rows()), default=0)
        self.led.partition.delete_records(min(told, self.led.partition.high_watermark))

    def rows(self) -> list[Row]:
        found = [decode_row(record.value or b"") for record in self.stored]
        return [row for row in found if row is not None]

    def check(self) -> None:
        for producer_id in PRODUCERS:
            self.end(producer_id, is_commit=True)
        for _ in range(3):  # The last leader may have to hear first what others published.
            self.publish()
        rows = self.rows()
        counts: Counter[int] = Counter()
        aborted: Counter[int] = Counter()
        for row in rows:
            counts[row["time_bucket_start"]] += row["count"]
            aborted[row["time_bucket_start"]] += row.get("aborted_count", 0)
            assert row["count"] == sum(each["count"] for each in row.get("producers", ()))
        assert counts == self.expected
        assert +aborted == self.aborted
        assert sum(row.get("uncounted_offsets", 0) for row in rows) == 0
        check_stretches(rows)
        if len(self.sources) == 1:
            book = make_book(PARTITION.topic, rows, from_ms=0, to_ms=2**62, now_ms=0)
            assert book.gaps_refused == self.refused_count


_TIMES = st.lists(st.integers(1, 5 * BUCKET_MS), min_size=1, max_size=3)
_STEPS = st.one_of(
    st.tuples(st.just("append"), _TIMES),
    st.tuples(st.just("append"), _TIMES, st.sampled_from(PRODUCERS)),
    st.tuples(st.just("commit"), st.sampled_from(PRODUCERS)),
    st.tuples(st.just("abort"), st.sampled_from(PRODUCERS)),
    st.tuples(st.just("publish"), st.integers(0, 3)),
    st.tuples(st.sampled_from(("lose_answer", "refuse"))),
    st.tuples(st.sampled_from(("change_leader", "move_shard", "roll", "delete_what_is_told"))),
)


@given(st.lists(_STEPS, max_size=30))
def test_each_record_is_told_once_whatever_happens(steps: list[tuple[object, ...]]) -> None:
    world = World()
    actions: dict[object, Callable[..., None]] = {
        "append": world.append,
        "commit": lambda producer_id: world.end(producer_id, is_commit=True),
        "abort": lambda producer_id: world.end(producer_id, is_commit=False),
        "publish": world.publish,
        "lose_answer": lambda: world.publish(is_answered=False),
        "change_leader": world.change_leader,
        "move_shard": world.move_shard,
        "refuse": world.refuse,
        "roll": world.roll,
        "delete_what_is_told": world.delete_what_is_told,
    }
    for name, *arguments in steps:
        actions[name](*arguments)
    world.check()


def test_what_is_deleted_before_it_was_counted_is_told_as_such() -> None:
    world = World()
    world.append([1])
    world.publish()
    for _ in range(3):
        world.append([2])
    world.led.partition.delete_records(3)
    world.publish()
    rows = world.rows()
    assert sum(row["count"] for row in rows) == 2
    assert sum(row["uncounted_offsets"] for row in rows) == 2
    check_stretches(rows)


def test_what_came_late_is_known_to_the_second() -> None:
    times = AppendTimes(10)
    times.note(12, 12, 5_000)
    times.note(12, 12, 6_000)
    times.note(15, 15, 9_000)
    known = [times.known_until(offset)[0] for offset in (9, 10, 11, 12, 14, 15)]
    assert known == [None, 5_000, 5_000, 9_000, 9_000, None]
    times.drop_before(12)
    assert (times.known_until(11), times.known_until(12)) == ((None, 12), (9_000, 15))
    for number in range(10_000):
        times.note(16 + number, 16 + number, 10_000 + number)
    assert len(times._ends) < 2_000
    late = times.known_until(5_000)[0]
    assert late is not None
    assert late >= 10_000 + 5_000 - 16


def test_lateness_is_that_of_the_batch_and_counts_from_its_time() -> None:
    header = read_batch_header(encode_batch([Record(0, 500, b"k", b"v")]))
    times = AppendTimes(0)
    times.note(1, 1, 700)
    times.note(2, 2, 4_000)
    counts = BatchCounts(0, BUCKET_MS)
    counts.add([header, header._replace(base_offset=1)], 2, (), times)
    (row,) = counts.rows({"source": "s"}, {}, {})
    assert (row["lateness_ms_min"], row["lateness_ms_max"]) == (200, 3_500)
    assert (row["count"], row["late_count"], row["timed_count"]) == (2, 1, 2)


def test_names_of_producers_that_are_forgotten_make_room_for_others() -> None:
    world = World()
    names = world.led.partition.client_ids
    assert names is not None
    names |= dict.fromkeys(range(100, 100 + PRODUCERS_MAX), "gone") | {PRODUCERS[0]: "shop"}
    world.append([1], PRODUCERS[0])
    world.end(PRODUCERS[0], is_commit=True)
    world.publish()
    assert names == {PRODUCERS[0]: "shop"}


def test_more_producers_than_are_told_apart_are_others() -> None:
    header = read_batch_header(encode_batch([Record(0, 500, b"k", b"v")]))
    headers = [header._replace(producer_id=number) for number in range(PRODUCERS_MAX + 5)]
    counts = BatchCounts(0, BUCKET_MS)
    counts.add(headers, 1, (), AppendTimes(0))
    (row,) = counts.rows({"source": "s"}, {}, {7: "shop"})
    others = [each for each in row["producers"] if each["client_id"] == OTHER]
    assert [each["count"] for each in others] == [5]
    assert row["producers"][7]["client_id"] == "shop"
    assert sum(each["count"] for each in row["producers"]) == PRODUCERS_MAX + 5
