"""A seeded campaign against one log on a faulty disk, compared with a model at every step.

The model is the plainest log there is: a dictionary from offset to record. A campaign draws
operations from its seed, applies each to the log and to the model, and compares. Now and then the
power goes, between operations or in the midst of one, and the log is opened from what the disk then
holds. What must be found again is exactly what the engine promises:

- every record in front of the flushed offset, and of the rest an unbroken stretch up to some batch;
- each record as it was written, under the offset that it was given;
- a producer that repeats its last batch is answered with the offsets of the first time;
- after a truncation, nothing of what was truncated.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from headwater.sim.campaigns.logs import NOW_MS, PARTITION, read_records
from headwater.sim.disk.faulty_disk import FaultyDisk, PowerCut, SimulatedCrash
from headwater.sim.disk.trace import note_contents, note_operations
from headwater.sim.trace import Trace
from headwater.storage.disk.handles import HandleCache
from headwater.storage.errors import LogStorageError
from headwater.storage.inspection.verify.verify import verify_directory
from headwater.storage.log_config import LogConfig
from headwater.storage.partition_log import PartitionLog
from headwater.storage.recovery.loader import LogLoader
from headwater.storage.retention import apply_retention, delete_records_before
from headwater.storage.truncation import truncate_fully, truncate_to
from headwater.wire.records import Compression, Record, encode_batch

DIRECTORY = "/data/topic-0"


@dataclass
class LogModel:
    """What the log should hold. `records` keeps what retention took: it may come back."""

    records: dict[int, Record] = field(default_factory=dict)
    start: int = 0
    end: int = 0
    #: One past each batch: the only places at which a crash may end the log.
    batch_ends: set[int] = field(default_factory=set)
    #: The model before a truncation that is under way: a crash in its midst may bring it back.
    before: LogModel | None = None

    def visible(self, start: int | None = None) -> list[Record]:
        first = self.start if start is None else start
        return [self.records[offset] for offset in sorted(self.records) if offset >= first]

    def cut(self, offset: int) -> None:
        """Whole batches go: all records of the batch that holds `offset`, too."""
        self.before = LogModel(self.records, self.start, self.end, self.batch_ends)
        self.batch_ends = {end for end in self.batch_ends if end <= offset}
        keep = max(self.batch_ends, default=0)
        # A batch that spans the offset goes as a whole; behind a gap the offset itself is the end.
        spanning = [o for o in self.records if keep <= o < offset]
        self.records = {o: r for o, r in self.records.items() if o < keep}
        self.end = max(min(spanning), min(self.start, offset)) if spanning else offset
        self.start = min(self.start, self.end)


@dataclass
class ProducerModel:
    """An idempotent producer: its next sequence, and its last batch for sending it again."""

    producer_id: int
    next_sequence: int = 0
    last_batch: bytes = b""
    last_base_offset: int = -1


class LogCampaign:
    def __init__(self, seed: int, *, config: LogConfig | None = None) -> None:
        self.seed = seed
        self.rng = random.Random(seed)
        self.config = config or LogConfig(
            segment_bytes=self.rng.choice((1_000, 2_000, 6_000)),
            index_interval_bytes=self.rng.choice((1, 200, 4096)),
            segment_index_bytes=self.rng.choice((64, 10 << 20)),
            retention_bytes=self.rng.choice((-1, 3_000)),
            retention_ms=-1,
            file_delete_delay_ms=0,
        )
        self.disk = FaultyDisk(seed, directories=["/data"])
        self.model = LogModel()
        self.producers = [ProducerModel(id_) for id_ in (7, 8)]
        self.now_ms = NOW_MS
        self.leader_epoch = 0
        self.checkpointed_recovery_point = 0
        self.checkpointed_start = 0
        self.value_number = 0
        self.trace = Trace(lambda: self.now_ms / 1000)
        self.crash_count = 0
        self.log = self.open(is_clean=False)

    def open(self, *, is_clean: bool) -> PartitionLog:
        return LogLoader(
            PARTITION,
            DIRECTORY,
            self.config,
            self.disk,
            HandleCache(self.disk, self.rng.choice((3, 50))),
            now_ms=self.now_ms,
            is_clean=is_clean,
            recovery_point=self.checkpointed_recovery_point,
            log_start_offset=self.checkpointed_start,
            keep_recovery_point=self._keep_recovery_point,
            keep_log_start=self._keep_log_start,
        ).load()

    def _keep_recovery_point(self, offset: int) -> None:
        self.checkpointed_recovery_point = offset

    def _keep_log_start(self, offset: int) -> None:
        self.checkpointed_start = offset

    # -- the campaign ----------------------------------------------------------------------------

    def run(self, step_count: int) -> str:
        """Raises AssertionError, its first line the seed, if log and model ever disagree.

        Returns the hash of the trace.
        """
        try:
            for _ in range(step_count):
                self.step()
            self.compare()
        except Exception as error:
            note_operations(self.trace, self.disk)
            raise AssertionError(
                f"seed {self.seed} with {self.config}\n{error!r}\n{self.trace.latest()}"
            ) from error
        note_operations(self.trace, self.disk)
        note_contents(self.trace, self.disk)
        return self.trace.hash

    def step(self) -> None:
        operation = self.rng.choices(
            [operation for operation, _ in self.operations()],
            [weight for _, weight in self.operations()],
        )[0]
        cut = self.rng.random() < 0.1
        note_operations(self.trace, self.disk)
        self.trace.note("step", operation.__name__ + (" with the power going" if cut else ""))
        self.now_ms += self.rng.randrange(50)
        if not cut:
            operation()
            return
        self.disk.before_operation = PowerCut(self.rng.randrange(12))
        try:
            operation()
        except SimulatedCrash:
            pass
        finally:
            self.disk.before_operation = None
        self.crash()

    def operations(self) -> list[tuple[Callable[[], None], int]]:
        return [
            (self.append, 30),
            (self.append_idempotent, 15),
            (self.repeat_last_batch, 5),
            (self.follow, 5),
            (self.read_somewhere, 10),
            (self.flush, 8),
            (self.checkpoint, 4),
            (self.roll, 3),
            (self.truncate, 4),
            (self.truncate_all, 1),
            (self.delete_records, 3),
            (self.retain, 5),
            (self.reopen, 2),
            (self.compare, 3),
        ]

    # -- operations ------------------------------------------------------------------------------

    def _records(self, first_offset: int, count: int) -> list[Record]:
        records = []
        for number in range(count):
            self.value_number += 1
            value = b"%d " % self.value_number + bytes(self.rng.randrange(120))
            key = b"%d" % self.rng.randrange(20)
            records.append(Record(first_offset + number, self.now_ms, key, value))
        return records

    def _expect(self, records: list[Record]) -> None:
        self.model.records.update({record.offset: record for record in records})
        self.model.end = records[-1].offset + 1
        self.model.batch_ends.add(self.model.end)

    def append(self) -> None:
        records = self._records(self.model.end, self.rng.randrange(1, 6))
        batch = encode_batch(
            [record._replace(offset=number) for number, record in enumerate(records)],
            compression=self.rng.choice(list(Compression)),
        )
        self._expect(records)
        result = self.log.append_as_leader(
            batch, leader_epoch=self.leader_epoch, now_ms=self.now_ms
        )
        assert (result.base_offset, result.last_offset) == (
            records[0].offset,
            records[-1].offset,
        )

    def append_idempotent(self) -> None:
        producer = self.rng.choice(self.producers)
        records = self._records(self.model.end, self.rng.randrange(1, 4))
        batch = encode_batch(
            [record._replace(offset=number) for number, record in enumerate(records)],
            producer_id=producer.producer_id,
            producer_epoch=0,
            base_sequence=producer.next_sequence,
        )
        self._expect(records)
        producer.last_batch, producer.last_base_offset = batch, records[0].offset
        producer.next_sequence += len(records)
        result = self.log.append_as_leader(
            batch, leader_epoch=self.leader_epoch, now_ms=self.now_ms
        )
        assert not result.is_duplicate

    def repeat_last_batch(self) -> None:
        producer = self.rng.choice(self.producers)
        if not self._last_batch_is_in_log(producer):
            return
        end = self.log.log_end_offset
        result = self.log.append_as_leader(
            producer.last_batch, leader_epoch=self.leader_epoch, now_ms=self.now_ms
        )
        assert result.is_duplicate and result.base_offset == producer.last_base_offset
        assert self.log.log_end_offset == end

    def _last_batch_is_in_log(self, producer: ProducerModel) -> bool:
        return (
            bool(producer.last_batch)
            and producer.last_base_offset in self.model.records
            and producer.last_base_offset >= self.model.start
        )

    def follow(self) -> None:
        """As a follower: a leader's batch, perhaps of a new epoch, perhaps behind a gap."""
        self.leader_epoch += self.rng.random() < 0.3
        records = self._records(
            self.model.end + self.rng.choice((0, 0, 0, 40)), self.rng.randrange(1, 4)
        )
        batch = encode_batch(records, leader_epoch=self.leader_epoch)
        self._expect(records)
        self.log.append_as_follower(batch, now_ms=self.now_ms)

    def read_somewhere(self) -> None:
        if self.model.end == self.model.start:
            return
        offset = self.rng.randrange(self.model.start, self.model.end)
        upper = self.rng.choice((self.model.end, *sorted(self.model.batch_ends)[-3:]))
        expected = [r for r in self.model.visible(offset) if r.offset < upper]
        found = read_records(self.log, offset, upper)
        found = [r for r in found if r.offset < upper]
        assert found == expected, f"{_brief(found)} instead of {_brief(expected)}"

    def flush(self) -> None:
        self.log.flush()

    def checkpoint(self) -> None:
        self.checkpointed_recovery_point = self.log.recovery_point
        self.checkpointed_start = self.log.log_start_offset

    def roll(self) -> None:
        self.log.roll(self.now_ms)

    def truncate(self) -> None:
        offset = self.rng.randrange(self.model.start, self.model.end + 2)
        if offset < self.model.end:
            self.model.cut(offset)
        self._resume_producers()
        truncate_to(self.log, offset, self.now_ms)
        self.model.before = None
        self.leader_epoch += 1

    def truncate_all(self) -> None:
        offset = self.rng.randrange(self.model.end + 100)
        self.model = LogModel(start=offset, end=offset, before=self.model)
        self._resume_producers()
        truncate_fully(self.log, offset, self.now_ms)
        self.model.before = None

    def delete_records(self) -> None:
        self.log.raise_high_watermark(self.model.end)
        offset = self.rng.randrange(self.model.start, self.model.end + 1)
        delete_records_before(self.log, offset)
        self.model.start = offset

    def retain(self) -> None:
        self.log.raise_high_watermark(self.rng.randrange(self.model.start, self.model.end + 1))
        apply_retention(self.log, self.now_ms)
        self.log.retired.remove_due(self.now_ms)
        self.model.start = self.log.log_start_offset

    def reopen(self) -> None:
        self.log.close()
        self.checkpoint()
        self.log = self.open(is_clean=True)
        # No file tells that a log ends behind its last record; it then ends there again.
        self.model.end = max(self.model.records, default=self.model.start - 1) + 1
        self.model.end = max(self.model.end, self.model.start)
        self.compare()

    def compare(self) -> None:
        """The whole log against the whole model."""
        assert self.log.log_end_offset == self.model.end, (
            self.log.log_end_offset,
            self.model.end,
        )
        assert self.log.log_start_offset == self.model.start, (
            self.log.log_start_offset,
            self.model.start,
        )
        found, expected = read_records(self.log, self.model.start), self.model.visible()
        assert found == expected, f"{_brief(found)} instead of {_brief(expected)}"
        self.verify()

    def verify(self) -> None:
        """Indexes, epochs and snapshots agree with the records, says an independent reader."""
        problems = [f for f in verify_directory(self.disk, DIRECTORY) if f.is_problem]
        assert not problems, problems

    # -- the power goes --------------------------------------------------------------------------

    def crash(self) -> None:
        self.crash_count += 1
        promised = self.log.flushed_offset
        note_operations(self.trace, self.disk)
        self.disk = self.disk.crash(self.rng)
        self.log = self.open(is_clean=False)
        end, start = self.log.log_end_offset, self.log.log_start_offset
        safe_end = max((o for o in self.model.records if o < promised), default=-1) + 1
        assert end >= safe_end, f"records up to {safe_end} were flushed, the log ends at {end}"
        found = read_records(self.log, start)
        if self.model.before is not None:
            self.model.records = {**self.model.before.records, **self.model.records}
            self.model.batch_ends |= self.model.before.batch_ends
            self.model.before = None
        expected = [r for r in self.model.visible(start) if r.offset < end]
        assert found == expected, f"after the crash: {_brief(found)} not {_brief(expected)}"
        self.model.end = end
        self.model.start = start
        self.model.records = {r.offset: r for r in found}
        self.model.batch_ends = {b for b in self.model.batch_ends if b <= end} | {end}
        self._resume_producers()
        self.verify()

    def _resume_producers(self) -> None:
        """What each producer would do next: go on behind what the log still has of it."""
        for producer in self.producers:
            if not self._last_batch_is_in_log(producer):
                producer.producer_id += 10  # As after InitProducerId: nothing is known of it.
                producer.next_sequence = 0
                producer.last_batch = b""


def _brief(records: list[Record]) -> list[tuple[int, bytes | None]]:
    return [(record.offset, (record.value or b"")[:4]) for record in records]


def run_with_failing_disk(campaign: LogCampaign) -> None:
    """Appends while the disk is full must fail, and leave the log as it was."""
    campaign.disk.capacity_bytes = campaign.disk.used_bytes + campaign.rng.randrange(400)
    for _ in range(20):
        end, records = campaign.model.end, dict(campaign.model.records)
        batch_ends = set(campaign.model.batch_ends)
        try:
            campaign.append()
        except LogStorageError:
            campaign.model.end, campaign.model.records = end, records
            campaign.model.batch_ends = batch_ends
    campaign.disk.capacity_bytes = None
    if campaign.log.failure is None:
        campaign.append()
    campaign.compare()
