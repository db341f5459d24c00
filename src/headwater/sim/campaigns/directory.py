"""A seeded campaign against a broker's directories on a faulty disk, compared with a model.

Several partitions in two directories are made, written, flushed, truncated, moved, deleted and made
again, with maintenance and restarts in between. Now and then the power goes, in the midst of any of
that, and everything is opened from what the disk then holds. What must be found again:

- every log that was made and not deleted, once, with the id of its topic, and no other;
- of each log all that was flushed, and of the rest an unbroken stretch, every record as written;
- no log whose deletion was reported, and nothing of it in a later log of the same name;
- whatever is not a log, untouched.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field

from headwater.base.checks import require
from headwater.base.ids import TopicPartition
from headwater.sim.campaigns.broker_logs import append, open_directories
from headwater.sim.campaigns.logs import NOW_MS, read_records
from headwater.sim.disk.faulty_disk import FaultyDisk, PowerCut, SimulatedCrash
from headwater.sim.disk.trace import note_contents, note_operations
from headwater.sim.trace import Trace
from headwater.storage.directories.directory_entries import EntryKind, list_entries
from headwater.storage.directories.log_directories import LogDirectories
from headwater.storage.directories.maintenance import Maintenance
from headwater.storage.log_config import LogConfig
from headwater.storage.log_settings import LOG_SETTINGS
from headwater.storage.partition_log import PartitionLog
from headwater.storage.retention import delete_records_before
from headwater.storage.truncation import truncate_to

PATHS = ["/a", "/b"]
PARTITIONS = [TopicPartition(topic, number) for topic in ("x", "y-z.0") for number in range(3)]
FOREIGN = {
    "/a/lost+found/inode": b"kept",
    "/a/__cluster_metadata-0/00000000000000000000.log": b"KRaft's",
    "/b/notes-0.backup/old.log": b"a copy",
    "/b/y-z.0-0.00000000000000000000000000000000-stray/data": b"stray",
}


@dataclass
class ModelLog:
    """What one log should hold."""

    topic_id: uuid.UUID
    values: dict[int, bytes] = field(default_factory=dict)
    start: int = 0
    #: What a truncation under way takes: a crash may or may not bring it back.
    doubtful: dict[int, bytes] = field(default_factory=dict)

    @property
    def end(self) -> int:
        return max(self.values, default=self.start - 1) + 1


class DirectoryCampaign:
    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.rng = random.Random(seed)
        self.config = LogConfig(
            segment_bytes=self.rng.choice((300, 1_000)),
            index_interval_bytes=self.rng.choice((1, 4096)),
            retention_bytes=self.rng.choice((-1, 1_500)),
            retention_ms=-1,
            file_delete_delay_ms=self.rng.choice((0, 100)),
            flush_ms=self.rng.choice((20, 2**63 - 1)),
        )
        parents = {path.rpartition("/")[0] for path in FOREIGN}
        self.disk = FaultyDisk(seed, directories=[*PATHS, *sorted(parents)])
        for path, data in FOREIGN.items():
            file = self.disk.open(path, create=True)
            file.write_at(0, data)
            file.sync()
            self.disk.sync_dir(path.rpartition("/")[0])
        self.now_ms = NOW_MS
        self.model: dict[TopicPartition, ModelLog] = {}
        #: Partitions whose making or deletion was under way when the power went.
        self.undecided: set[TopicPartition] = set()
        self.value_number = 0
        self.leader_epoch = 0
        self.crash_count = 0
        self.trace = Trace(lambda: self.now_ms / 1000)
        self.directories: LogDirectories
        self.maintenance: Maintenance
        self._open()

    def _open(self) -> None:
        self.directories = open_directories(
            self.disk, PATHS, self.config, now_ms=self.now_ms, seed=self.rng.getrandbits(30)
        )
        self.maintenance = Maintenance(self.directories, LOG_SETTINGS.defaults())

    # -- the campaign ----------------------------------------------------------------------------

    def run(self, step_count: int) -> str:
        """Raises AssertionError, its first line the seed, if logs and model ever disagree.

        Returns the hash of the trace.
        """
        try:
            for _ in range(step_count):
                self.step()
            self.restart()
        except Exception as error:
            note_operations(self.trace, self.disk)
            raise AssertionError(
                f"seed {self.seed}: {self.config}\n{error!r}\n{self.trace.latest()}"
            ) from error
        note_operations(self.trace, self.disk)
        note_contents(self.trace, self.disk)
        return self.trace.hash

    def step(self) -> None:
        operations = self.operations()
        operation = self.rng.choices(list(operations), list(operations.values()))[0]
        self.now_ms += self.rng.randrange(30)
        cut = self.rng.randrange(25) if self.rng.random() < 0.08 else None
        note_operations(self.trace, self.disk)
        power = "" if cut is None else f", power goes at {cut}"
        self.trace.note("step", f"{operation.__name__}{power}")
        if cut is None:
            operation()
            return
        self.disk.before_operation = PowerCut(cut)
        try:
            operation()
        except SimulatedCrash:
            pass
        finally:
            self.disk.before_operation = None
        self.crash()

    def operations(self) -> dict[Callable[[], None], int]:
        return {
            self.create: 10,
            self.append: 60,
            self.flush: 10,
            self.maintain: 25,
            self.truncate: 3,
            self.delete_records: 4,
            self.delete: 4,
            self.make_again: 3,
            self.move: 3,
            self.restart: 2,
        }

    # -- operations ------------------------------------------------------------------------------

    def some_log(self) -> PartitionLog | None:
        logs = list(self.directories)
        return self.rng.choice(logs) if logs else None

    def create(self) -> None:
        self._create(self.rng.choice(PARTITIONS))

    def _create(self, partition: TopicPartition) -> None:
        if partition in self.model:
            return
        topic_id = uuid.UUID(int=self.rng.getrandbits(127) + 2)
        self.undecided.add(partition)
        self.model[partition] = ModelLog(topic_id)
        log = self.directories.create(partition, topic_id, self.now_ms)
        assert (log.log_start_offset, log.log_end_offset, log.high_watermark) == (0, 0, 0)
        self.undecided.discard(partition)

    def append(self) -> None:
        log = self.some_log()
        if log is None:
            return
        model = self.model[log.partition]
        self.value_number += 1
        value = b"%d " % self.value_number + bytes(self.rng.randrange(100))
        model.values[log.log_end_offset] = value
        append(log, value, now_ms=self.now_ms, leader_epoch=self.leader_epoch)
        log.raise_high_watermark(self.rng.randrange(log.high_watermark, log.log_end_offset + 1))

    def flush(self) -> None:
        log = self.some_log()
        if log is not None:
            log.flush()

    def maintain(self) -> None:
        name = self.rng.choice(list(self.maintenance.tasks))
        self.trace.note("step", f"it is {name}")
        self.maintenance.tasks[name].run_now(self.now_ms)
        self._note_starts()

    def _note_starts(self) -> None:
        for log in self.directories:
            self.model[log.partition].start = log.log_start_offset

    def truncate(self) -> None:
        log = self.some_log()
        if log is None or log.log_end_offset == log.log_start_offset:
            return
        model = self.model[log.partition]
        offset = self.rng.randrange(log.log_start_offset, log.log_end_offset)
        model.doubtful = {o: value for o, value in model.values.items() if o >= offset}
        model.values = {o: value for o, value in model.values.items() if o < offset}
        self.leader_epoch += 1  # A log is truncated because another leader has taken over.
        truncate_to(log, offset, self.now_ms)
        model.doubtful = {}

    def delete_records(self) -> None:
        log = self.some_log()
        if log is not None:
            offset = self.rng.randrange(log.log_start_offset, log.high_watermark + 1)
            self.model[log.partition].start = delete_records_before(log, offset)

    def delete(self) -> None:
        partitions = self.rng.sample(PARTITIONS, self.rng.randrange(1, 3))
        self.undecided.update(partition for partition in partitions if partition in self.model)
        self.directories.delete(partitions, self.now_ms)
        for partition in partitions:
            self.model.pop(partition, None)
            self.undecided.discard(partition)

    def make_again(self) -> None:
        """The same name at once, which must not inherit anything."""
        self.delete()
        self._create(self.rng.choice(PARTITIONS))

    def move(self) -> None:
        log = self.some_log()
        if log is not None:
            move = self.directories.moves.start(log.partition, self.rng.choice(PATHS), self.now_ms)
            if move is not None:
                move.copy(self.now_ms, max_bytes=self.rng.randrange(1, 2_000))

    def restart(self) -> None:
        self.directories.shutdown(7)
        self._open()
        assert all(each.was_clean for each in self.directories.directories)
        for log in self.directories:
            assert log.log_end_offset == self.model[log.partition].end, str(log.partition)
        self.compare(flushed={log.partition: log.log_end_offset for log in self.directories})

    # -- the power goes --------------------------------------------------------------------------

    def crash(self) -> None:
        self.crash_count += 1
        flushed = {log.partition: log.flushed_offset for log in self.directories}
        note_operations(self.trace, self.disk)
        self.disk = self.disk.crash(self.rng)
        self._open()
        self.compare(flushed)

    def compare(self, flushed: dict[TopicPartition, int]) -> None:
        """Everything against the model; then the model takes over what was found."""
        found = {log.partition: log for log in self.directories}
        assert len(found) == len(list(self.directories)), "a partition has two logs"
        missing = self.model.keys() - found.keys() - self.undecided
        assert not missing, f"{missing} are gone"
        assert not found.keys() - self.model.keys(), "a log came back or out of nowhere"
        for partition, log in found.items():
            self._compare_log(log, self.model[partition], flushed.get(partition, 0))
        self.model = {partition: self.model[partition] for partition in found}
        self.undecided.clear()
        contents = self.disk.contents()
        assert {path: contents.get(path) for path in FOREIGN} == FOREIGN

    def _compare_log(self, log: PartitionLog, model: ModelLog, flushed: int) -> None:
        directory = require(
            self.directories.directory_of(log.partition), "%s is in no directory", log.partition
        )
        topic_id = directory.topic_ids.get(log.partition)
        if log.partition in self.undecided and topic_id is None:
            self.directories.check_topic_id(log.partition, model.topic_id)
        else:
            assert topic_id == model.topic_id
        expected = (
            model.values if log.log_end_offset <= model.end else model.values | model.doubtful
        )
        end = max((offset for offset in model.values if offset < flushed), default=-1) + 1
        assert log.log_end_offset >= end, f"{log.partition} was flushed to {end}"
        values = {r.offset: r.value for r in read_records(log, log.log_start_offset)}
        wanted = {o: v for o, v in expected.items() if log.log_start_offset <= o}
        wanted = {o: v for o, v in wanted.items() if o < log.log_end_offset}
        assert values == wanted, f"{log.partition}: {sorted(values)} instead of {sorted(wanted)}"
        assert log.log_start_offset <= max(model.start, log.log_end_offset)
        assert log.log_start_offset <= log.high_watermark <= log.log_end_offset
        model.values = {o: v for o, v in expected.items() if o < log.log_end_offset}
        model.doubtful = {}
        model.start = log.log_start_offset


def remains(disk: FaultyDisk) -> list[str]:
    """Directories of logs that were deleted and are not removed yet."""
    entries = [entry for path in PATHS for entry in list_entries(disk, path)]
    return [entry.name for entry in entries if entry.kind is EntryKind.DELETED]
