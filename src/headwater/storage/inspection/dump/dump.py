"""What stands in the files of a log directory: `headwater log dump`.

`dump_file` yields the content of one file as `items`. The file's name tells what it is, as it
tells a broker: segment files by their suffix (also while compaction or deletion has renamed them),
checkpoints and metadata by their full name. Everything is read a piece at a time, so the size of a
file does not matter. Whatever is wrong with a file is an item too, a `Fault`: bytes never raise.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from headwater.storage.checkpoints import (
    CLEANER,
    LOG_START,
    RECOVERY_POINT,
    REPLICATION,
    OffsetCheckpoint,
)
from headwater.storage.directories.broker_metadata import META_PROPERTIES, read_broker_metadata
from headwater.storage.directories.clean_shutdown import CLEAN_SHUTDOWN_MARKER
from headwater.storage.directories.partition_metadata import PARTITION_METADATA, read_topic_id
from headwater.storage.disk.files import FileSystem, read_bytes
from headwater.storage.errors import CorruptFileError
from headwater.storage.inspection.dump.index_files import (
    check_sanity,
    dump_hidden_index,
    dump_offset_index,
    dump_time_index,
    dump_transaction_index,
)
from headwater.storage.inspection.dump.items import (
    DumpItem,
    Fault,
    FileStart,
    LogStart,
    OffsetEntry,
    QuorumSnapshotStart,
    TopicIdItem,
)
from headwater.storage.inspection.dump.log_files import dump_log
from headwater.storage.leader_epochs import LEADER_EPOCH_CHECKPOINT, LeaderEpochs
from headwater.storage.producers.snapshot import decode_snapshot
from headwater.storage.segments.segment_files import (
    HIDDEN_INDEX,
    LOG,
    OFFSET_INDEX,
    SNAPSHOT,
    TIME_INDEX,
    SegmentFileName,
    parse_segment_file_name,
)

OFFSET_CHECKPOINTS: Final = (RECOVERY_POINT, REPLICATION, LOG_START, CLEANER)

BOOTSTRAP_SNAPSHOT: Final = "bootstrap.checkpoint"
_QUORUM_SNAPSHOT: Final = re.compile(r"([0-9]{20})-([0-9]{10})\.checkpoint", re.ASCII)


@dataclass(frozen=True, slots=True)
class DumpOptions:
    #: Look into batches, at their records.
    deep: bool = False
    #: Of a log file only batches that end within so many bytes; None for all of it.
    max_bytes: int | None = None
    #: Of an index only what is wrong with it.
    verify_index_only: bool = False
    #: Of an index only whether it passes the check that a starting broker makes.
    index_sanity_check: bool = False


def dump_file(files: FileSystem, path: str, options: DumpOptions) -> Iterator[DumpItem]:
    """All that is in one file, or the sentence that says why it cannot be shown."""
    yield FileStart(path)
    try:
        if files.is_dir(path):
            yield Fault(path, "this is a directory; `headwater log verify` takes directories")
        else:
            yield from _content(files, path, options)
    except CorruptFileError as error:
        yield Fault(path, str(error).removeprefix(f"{path}: ").rstrip("."))
    except OSError as error:
        yield Fault(path, f"it cannot be read: {error.strerror or error}")


def _content(files: FileSystem, path: str, options: DumpOptions) -> Iterator[DumpItem]:
    directory, _, name = path.rpartition("/")
    directory = directory or "."
    segment = parse_segment_file_name(name)
    if segment is not None and segment.suffix != SNAPSHOT and segment.suffix != LOG:
        yield from _index(files, path, segment, options)
    elif segment is not None and segment.suffix == SNAPSHOT:
        yield from decode_snapshot(read_bytes(files, path))
    elif segment is not None or name.endswith(LOG):
        yield LogStart(None if segment is None else segment.base_offset)
        yield from dump_log(files.open(path), path, deep=options.deep, max_bytes=options.max_bytes)
    elif name == BOOTSTRAP_SNAPSHOT or _QUORUM_SNAPSHOT.fullmatch(name):
        match = _QUORUM_SNAPSHOT.fullmatch(name)
        numbers = (int(match[1]), int(match[2])) if match is not None else (None, None)
        yield QuorumSnapshotStart(*numbers)
        yield from dump_log(files.open(path), path, deep=options.deep, max_bytes=options.max_bytes)
    else:
        yield from _table(files, path, directory, name)


def _index(
    files: FileSystem, path: str, segment: SegmentFileName, options: DumpOptions
) -> Iterator[DumpItem]:
    show = not options.verify_index_only
    if options.index_sanity_check and not (
        segment.suffix == OFFSET_INDEX and files.size(path) == 0
    ):
        yield from check_sanity(files, path, segment)
    elif segment.suffix == OFFSET_INDEX:
        yield from dump_offset_index(files, path, segment, show=show)
    elif segment.suffix == TIME_INDEX:
        yield from dump_time_index(files, path, segment, show=show)
    elif segment.suffix == HIDDEN_INDEX:
        yield from dump_hidden_index(files, path, segment)
    else:
        yield from dump_transaction_index(files, path)


def _table(files: FileSystem, path: str, directory: str, name: str) -> Iterator[DumpItem]:
    """The small text files. Their readers take an absent file for an empty one."""
    files.size(path)
    if name in OFFSET_CHECKPOINTS:
        for partition, offset in OffsetCheckpoint(files, path).read().items():
            yield OffsetEntry(partition, offset)
    elif name == LEADER_EPOCH_CHECKPOINT:
        yield from LeaderEpochs.load(files, directory).entries
    elif name == PARTITION_METADATA:
        topic_id = read_topic_id(files, directory)
        if topic_id is not None:
            yield TopicIdItem(topic_id)
    elif name == META_PROPERTIES:
        metadata = read_broker_metadata(files, directory)
        if metadata is not None:
            yield metadata
    elif name == CLEAN_SHUTDOWN_MARKER:
        yield Fault(path, "this marks a clean shutdown and holds no data; read it as text")
    else:
        yield Fault(path, _foreign(name))


def _foreign(name: str) -> str:
    if name.endswith((OFFSET_INDEX, TIME_INDEX, ".txnindex", HIDDEN_INDEX, SNAPSHOT)):
        return "its name does not begin with an offset of 20 digits, which its entries count from"
    return "this is not a file of a Kafka log directory, by its name"
