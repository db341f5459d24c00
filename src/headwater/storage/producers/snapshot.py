"""Producer snapshots: a partition's producer state at an offset, in Kafka's `.snapshot` files.

    int16   version, 1
    uint32  CRC-32C of all that follows
    int32   number of entries
    entry   producer id int64, epoch int16, last sequence int32, last offset int64,
            offset delta int32, timestamp int64, coordinator epoch int32,
            first offset of the open transaction int64 (-1 if none is open)

A snapshot `00000000000000000042.snapshot` is the state after offset 41. It saves the replay of all
segments before it, and nothing more: one that is missing or damaged costs time, not data. Of the
five batches that an entry remembers only the last is kept, as in Kafka; `forgotten_batches` finds
the others in the log when they are asked for.

A snapshot at a clean shutdown appears whole or not at all; one taken on the way may be damaged by a
crash, which its checksum tells. One that truncation removes must not come back after a crash: by
then the log may have grown past it with other records. The removal of one that retention left
behind needs no such care.
"""

from __future__ import annotations

import logging
import struct
from collections.abc import Collection, Iterable
from typing import Final, NamedTuple

from crc32c import crc32c

from headwater.storage.disk.files import FileSystem, read_bytes, write_atomically
from headwater.storage.errors import CorruptSnapshotError
from headwater.storage.producers.entry import NO_OFFSET, BatchMetadata, ProducerEntry
from headwater.storage.segments.segment_files import SNAPSHOT, parse_segment_file_name, segment_path

_logger = logging.getLogger(__name__)

VERSION: Final = 1
_HEADER: Final = struct.Struct(">hIi")  # version, checksum, number of entries
_CHECKED_FROM: Final = 6
_ENTRY: Final = struct.Struct(">qhiqiqiq")


class Snapshot(NamedTuple):
    """The state of the producers up to `offset`, exclusive."""

    offset: int
    entries: list[ProducerEntry]


# -- bytes ---------------------------------------------------------------------------------------


def encode_snapshot(entries: Iterable[ProducerEntry]) -> bytes:
    """The content of a snapshot file."""
    rows = [
        _ENTRY.pack(
            entry.producer_id,
            entry.producer_epoch,
            entry.last_sequence,
            entry.last_offset,
            entry.last_offset_delta,
            entry.last_timestamp,
            entry.coordinator_epoch,
            NO_OFFSET if entry.transaction_first_offset is None else entry.transaction_first_offset,
        )
        for entry in entries
    ]
    checked = len(rows).to_bytes(4, "big") + b"".join(rows)
    return _HEADER.pack(VERSION, crc32c(checked), len(rows)) + checked[4:]


def decode_snapshot(data: bytes) -> list[ProducerEntry]:
    """The entries of a snapshot file; `CorruptSnapshotError` unless every bit of it is sound."""
    if len(data) < _HEADER.size:
        raise CorruptSnapshotError(f"The snapshot has {len(data)} bytes, too few for its header.")
    version, stored_crc, count = _HEADER.unpack_from(data)
    if version != VERSION:
        raise CorruptSnapshotError(f"The snapshot has version {version}, and only 1 is known.")
    computed_crc = crc32c(memoryview(data)[_CHECKED_FROM:])
    if computed_crc != stored_crc:
        raise CorruptSnapshotError(
            f"The snapshot's checksum is {computed_crc:#010x} instead of {stored_crc:#010x}."
        )
    if len(data) != _HEADER.size + count * _ENTRY.size:
        raise CorruptSnapshotError(
            f"The snapshot has {len(data)} bytes, which does not fit its {count} entries."
        )
    return [_entry(*row) for row in _ENTRY.iter_unpack(memoryview(data)[_HEADER.size :])]


def _entry(
    producer_id: int,
    producer_epoch: int,
    last_sequence: int,
    last_offset: int,
    offset_delta: int,
    timestamp: int,
    coordinator_epoch: int,
    transaction_first_offset: int,
) -> ProducerEntry:
    # Without an offset there is no batch: a marker was the first that was seen of the producer, or
    # the last one came with a new epoch.
    last_batch = BatchMetadata(last_sequence, last_offset, offset_delta, timestamp)
    return ProducerEntry(
        producer_id,
        producer_epoch,
        coordinator_epoch,
        timestamp,
        transaction_first_offset if transaction_first_offset >= 0 else None,
        (last_batch,) if last_offset >= 0 else (),
    )


# -- files ---------------------------------------------------------------------------------------


def snapshot_path(directory: str, offset: int) -> str:
    """Where the snapshot at `offset` is kept."""
    return segment_path(directory, offset, SNAPSHOT)


def list_snapshots(files: FileSystem, directory: str) -> list[int]:
    """The offsets of the directory's snapshots, in order."""
    names = map(parse_segment_file_name, files.list_dir(directory))
    return sorted(
        name.base_offset
        for name in names
        if name is not None and name.suffix == SNAPSHOT and not name.stage
    )


def write_snapshot(
    files: FileSystem,
    directory: str,
    offset: int,
    entries: Iterable[ProducerEntry],
    *,
    durable: bool = True,
) -> None:
    """Write a snapshot; a crash leaves it whole or absent if `durable`, or damaged if not.

    A damaged one is recognised by its checksum, and an older one serves in its place. So a roll on
    the hot path does not wait for the disk; the flush of the sealed segment syncs its snapshot.
    """
    path, data = snapshot_path(directory, offset), encode_snapshot(entries)
    if durable:
        write_atomically(files, path, data)
        return
    file = files.open(path, create=True)
    try:
        file.truncate(0)
        file.write_at(0, data)
    except OSError:
        files.remove(path)
        raise
    finally:
        file.close()


def sync_snapshot(files: FileSystem, directory: str, offset: int) -> None:
    """Make a snapshot durable that was written without; it may have been removed meanwhile."""
    try:
        file = files.open(snapshot_path(directory, offset))
    except FileNotFoundError:
        return
    try:
        file.sync()
    finally:
        file.close()


def read_snapshot(files: FileSystem, directory: str, offset: int) -> Snapshot:
    """Read one snapshot; `CorruptSnapshotError` names the file."""
    path = snapshot_path(directory, offset)
    try:
        return Snapshot(offset, decode_snapshot(read_bytes(files, path)))
    except CorruptSnapshotError as error:
        raise CorruptSnapshotError(f"{path}: {error}") from error


def latest_snapshot(offsets: Iterable[int], *, at_or_below: int | None = None) -> int | None:
    """The newest of these snapshots, None if there is none."""
    return max(
        (offset for offset in offsets if at_or_below is None or offset <= at_or_below),
        default=None,
    )


def load_latest_snapshot(
    files: FileSystem,
    directory: str,
    *,
    at_or_below: int | None = None,
    listed: Collection[int] | None = None,
) -> Snapshot | None:
    """The newest snapshot that is sound; damaged ones on the way to it are removed.

    `listed` are the directory's snapshots, where the caller has them; so for the functions below.
    """
    offsets = set(list_snapshots(files, directory) if listed is None else listed)
    while (offset := latest_snapshot(offsets, at_or_below=at_or_below)) is not None:
        try:
            return read_snapshot(files, directory, offset)
        except CorruptSnapshotError as error:
            _logger.warning("An older producer snapshot will do, this one is removed: %s", error)
            files.remove(snapshot_path(directory, offset))
            offsets.remove(offset)
    return None


def remove_snapshots_above(
    files: FileSystem, directory: str, offset: int, *, listed: Collection[int] | None = None
) -> None:
    """Remove snapshots that reach past `offset`, durably: the log was cut there."""
    offsets = list_snapshots(files, directory) if listed is None else listed
    removed = [each for each in offsets if each > offset]
    if removed:
        _remove(files, directory, removed)
        files.sync_dir(directory)


def remove_snapshots_below(files: FileSystem, directory: str, offset: int) -> None:
    """Remove snapshots that end before `offset`: no segment of them is left."""
    _remove(files, directory, [each for each in list_snapshots(files, directory) if each < offset])


def remove_stray_snapshots(
    files: FileSystem, directory: str, segment_base_offsets: Collection[int]
) -> None:
    """Remove snapshots that stand at the start of no segment, except the one behind them all.

    Segments get one each when they begin; the exception is what a clean shutdown writes at the end.
    """
    strays = stray_snapshots(list_snapshots(files, directory), segment_base_offsets)
    _remove(files, directory, strays)


def stray_snapshots(offsets: Collection[int], segment_base_offsets: Collection[int]) -> list[int]:
    """Those of `offsets` that `remove_stray_snapshots` removes."""
    last_base_offset = max(segment_base_offsets, default=-1)
    strays = sorted(offset for offset in offsets if offset not in segment_base_offsets)
    keep = strays[-1:] if strays and strays[-1] > last_base_offset else []
    return [offset for offset in strays if offset not in keep]


def _remove(files: FileSystem, directory: str, offsets: list[int]) -> None:
    for offset in offsets:
        files.remove(snapshot_path(directory, offset))
