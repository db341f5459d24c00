"""Which small files of a table to make one, decided from the manifest alone.

Files are only joined within a directory, and those with records of topics only with neighbours of
the same topic partition, so that offsets stay in order within a file and files do not interleave.
Files of like size go together (the tiers), or the same rows would be written again with each few
small files that come along.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from headwater.pipeline.lake.table.data_file import DataFile

TARGET_BYTES: Final = 128 << 20
#: Runs of files that are all smaller than one of these are joined; the smallest that fits first.
TIERS_BYTES: Final = (256 << 10, 4 << 20, 48 << 20)


class CompactionOptions(NamedTuple):
    #: How many small files must be there for them to be joined.
    from_files: int = 32
    target_bytes: int = TARGET_BYTES
    tiers_bytes: tuple[int, ...] = TIERS_BYTES


#: For who asks for compaction: whatever can be joined.
EAGER: Final = CompactionOptions(2, TARGET_BYTES, (TARGET_BYTES // 2,))


def plan_compaction(
    files: Iterable[DataFile], options: CompactionOptions
) -> list[tuple[DataFile, ...]]:
    """Groups of files, each to be replaced by one with the same rows in that order."""
    planned: list[tuple[DataFile, ...]] = []
    for group in _groups(files):
        for tier_bytes in options.tiers_bytes:
            runs = [
                run
                for run in _runs(group, tier_bytes, options.target_bytes)
                if len(run) >= max(options.from_files, 2)
            ]
            if runs:
                planned += runs
                break
    return planned


def _groups(files: Iterable[DataFile]) -> list[list[DataFile]]:
    groups: dict[tuple[object, ...], list[DataFile]] = {}
    for file in files:
        span = file.records
        key = (file.directory, None if span is None else span.topic_partition)
        groups.setdefault(key, []).append(file)
    for group in groups.values():
        group.sort(key=_order)
    return [group for group in groups.values() if len(group) > 1]


def _order(file: DataFile) -> tuple[int, str]:
    return (0 if file.records is None else file.records.first_offset, file.path)


def _runs(
    group: Sequence[DataFile], tier_bytes: int, target_bytes: int
) -> Iterator[tuple[DataFile, ...]]:
    """Neighbours smaller than `tier_bytes`, cut where they would be more than the target."""
    run: list[DataFile] = []
    run_bytes = 0
    for file in group:
        is_small = file.size_bytes < tier_bytes
        if run and (
            not is_small or run_bytes + file.size_bytes > target_bytes or _clash(run, file)
        ):
            yield tuple(run)
            run, run_bytes = [], 0
        if is_small:
            run.append(file)
            run_bytes += file.size_bytes
    if run:
        yield tuple(run)


def _clash(run: Sequence[DataFile], file: DataFile) -> bool:
    """Whether the offsets of a file do not all come after those of the run."""
    last, span = run[-1].records, file.records
    return last is not None and span is not None and span.first_offset <= last.last_offset
