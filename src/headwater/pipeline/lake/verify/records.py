"""Records of topics: each offset once, in the file and the range that say so, and no gap.

Three statements are held against each other: the ranges that commits covered, what the manifest
says of each file, and the offsets in the files. Only the columns needed for that are read. Offsets
that a range lacks are no fault by themselves (transaction markers and what a topic compacted away
have offsets too), but the number of records must be the one that the commit found; whether the
topic still has others is for `cluster`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.base.counted import counted
from headwater.base.ids import TopicPartition
from headwater.pipeline.lake.errors import LakeDamagedError
from headwater.pipeline.lake.lake_table import LakeTable
from headwater.pipeline.lake.reading.table_read import TableReader
from headwater.pipeline.lake.table.coverage import OffsetRange, gaps
from headwater.pipeline.lake.table.data_file import DataFile, RecordSpan
from headwater.pipeline.lake.table.snapshot import Snapshot
from headwater.pipeline.lake.verify.finding import Finding, problem

Offsets: TypeAlias = npt.NDArray[np.int64]
_COLUMNS = ("partition", "offset", "timestamp")


def verify_records(
    table: LakeTable, snapshot: Snapshot, sound: Sequence[DataFile], findings: list[Finding]
) -> None:
    """`sound` are the files that can be read; those that cannot were reported."""
    if not snapshot.coverage:
        return
    for one, ranges in snapshot.coverage.items():
        for start, end in gaps(ranges):
            findings.append(
                problem(f"{one} has a gap: offsets {start} to {end - 1} were never archived.")
            )
    files: dict[TopicPartition, list[tuple[RecordSpan, DataFile]]] = {}
    for file in sound:
        if file.records is None:
            findings.append(problem(f"{file.path} does not say which records it holds."))
        else:
            span = file.records
            files.setdefault(span.topic_partition, []).append((span, file))
    damaged = {
        file.records.topic_partition
        for file in set(snapshot.files.values()) - set(sound)
        if file.records is not None
    }
    reader = TableReader(table.path, snapshot, _COLUMNS, table.disk)
    for one in sorted(files.keys() | snapshot.coverage.keys()):
        ranges = snapshot.coverage.get(one, ())
        counts = np.zeros(len(ranges), np.int64)
        for cluster in _clusters(files.get(one, [])):
            counts += _verify_cluster(reader, one, ranges, cluster, findings)
        if one not in damaged:
            _compare_counts(one, ranges, counts, findings)


def _compare_counts(
    one: TopicPartition, ranges: Iterable[OffsetRange], counts: Offsets, findings: list[Finding]
) -> None:
    for covered, count in zip(ranges, counts, strict=True):
        if count != covered.row_count:
            findings.append(
                problem(
                    f"{one} has {counted(count, 'record')} at offsets {covered.start} to "
                    f"{covered.end - 1}, "
                    f"and {covered.row_count} were archived there."
                )
            )


def _clusters(
    files: list[tuple[RecordSpan, DataFile]],
) -> Iterator[list[tuple[RecordSpan, DataFile]]]:
    """Files whose spans of offsets overlap, together: only those can have an offset twice."""
    cluster: list[tuple[RecordSpan, DataFile]] = []
    last = -1
    for span, file in sorted(files, key=lambda each: each[0].first_offset):
        if cluster and span.first_offset > last:
            yield cluster
            cluster = []
        cluster.append((span, file))
        last = max(last, span.last_offset)
    if cluster:
        yield cluster


def _verify_cluster(
    reader: TableReader,
    one: TopicPartition,
    ranges: Sequence[OffsetRange],
    cluster: list[tuple[RecordSpan, DataFile]],
    findings: list[Finding],
) -> Offsets:
    """How many different records lie in each range."""
    found = [np.zeros(0, np.int64)]
    for span, file in cluster:
        try:
            rows = reader.table([file])
        except LakeDamagedError as error:
            findings.append(problem(str(error)))
            continue
        found.append(_own_offsets(rows, span, file, findings))
    offsets, times = np.unique(np.concatenate(found), return_counts=True)
    if (times > 1).any():
        twice = offsets[times > 1]
        findings.append(
            problem(
                f"{one} has {counted(len(twice), 'record')} twice, the first at offset "
                f"{twice[0]}, in {' and '.join(file.path for _, file in cluster[:3])}."
            )
        )
    starts = np.array([each.start for each in ranges], np.int64)
    ends = np.array([each.end for each in ranges], np.int64)
    counts = np.searchsorted(offsets, ends) - np.searchsorted(offsets, starts)
    if counts.sum() < len(offsets):
        is_covered = np.zeros(len(offsets), np.bool_)
        for each in ranges:
            is_covered |= (offsets >= each.start) & (offsets < each.end)
        outside = offsets[~is_covered]
        findings.append(
            problem(
                f"{one} has {counted(len(outside), 'record')} that no commit covered, the first "
                f"at offset {outside[0]}, in {cluster[0][1].path}."
            )
        )
    return counts


def _own_offsets(
    rows: pa.Table, span: RecordSpan, file: DataFile, findings: list[Finding]
) -> Offsets:
    """The offsets of a file's records, those of other partitions reported and left out."""
    offsets: Offsets = rows.column("offset").to_numpy()
    is_own = rows.column("partition").to_numpy() == span.partition
    if not is_own.all():
        findings.append(
            problem(
                f"{file.path} has {counted(int((~is_own).sum()), 'record')} of partitions other "
                f"than {span.topic_partition}."
            )
        )
    dates = rows.column("timestamp").cast(pa.date32()).cast(pa.int32()).to_numpy()
    if file.partition and file.partition[-1] is not None:
        day = np.datetime64(file.partition[-1], "D").astype(np.int64)
        if not (dates == day).all():
            findings.append(problem(f"{file.path} has records of another date."))
    own: Offsets = offsets[is_own]
    if len(own) and (own.min(), own.max()) != (span.first_offset, span.last_offset):
        findings.append(
            problem(
                f"{file.path} has offsets {own.min()} to {own.max()}, and its manifest says "
                f"{span.first_offset} to {span.last_offset}."
            )
        )
    if (np.diff(own) <= 0).any():
        findings.append(problem(f"{file.path} does not have its records in order of offsets."))
    return own
