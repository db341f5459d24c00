"""What a streaming query's checkpoint tells a lake: who writes, and which offsets a batch has.

Spark keeps in a checkpoint's `metadata` the id of the query, and in `offsets/<batch>` where each
source stood at the end of that batch, before the batch is worked on. A batch begins where the one
before ended; the first one carries its beginning with it. The beginning of a partition that appears
later is in no file: its range begins with the first record that was read.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from headwater.base.ids import TopicPartition
from headwater.pipeline.connector.offset_json import SourceOffsets
from headwater.pipeline.lake.errors import LakeError
from headwater.pipeline.lake.table.coverage import OffsetRange
from headwater.pipeline.lake.table.data_file import DataFile
from headwater.pipeline.lake.table.local_path import local_path


def checkpoint_writer(checkpoint: str | os.PathLike[str], name: str) -> str:
    """The name of a writer that is the same for all runs with this checkpoint, and for no others.

    A new checkpoint numbers its batches from 0 again: with the same writer they would be taken for
    repetitions.
    """
    path = Path(local_path(checkpoint)) / "metadata"
    try:
        query_id = json.loads(path.read_text())["id"]
    except (OSError, ValueError, KeyError, TypeError):
        raise LakeError(
            f"{path} does not hold the id of a streaming query: is this a checkpoint's directory?"
        ) from None
    return f"{name}@{query_id}"


def batch_ends(checkpoint: str | os.PathLike[str], batch_id: int) -> SourceOffsets | None:
    """Where the only source of a query stood at the end of a batch; None if that is not known."""
    path = Path(local_path(checkpoint)) / "offsets" / str(batch_id)
    try:
        text = path.read_text()
    except FileNotFoundError:
        return None
    return parse_offset_log(text, str(path))


def parse_offset_log(text: str, name: str) -> SourceOffsets | None:
    """The offsets in a file of the offset log: a version, a line about the batch, and the sources.

    None if the source had nothing at all yet.
    """
    version, _, rest = text.strip().partition("\n")
    lines = rest.splitlines()[1:]
    if not version.startswith("v") or not lines:
        raise LakeError(f"{name} is not a batch of Spark's offset log.")
    if len(lines) != 1:
        raise LakeError(
            f"{name} has the offsets of {len(lines)} sources; records of topics are archived by a "
            "query with one."
        )
    line = lines[0]
    if line == "-":
        return None
    return SourceOffsets.from_json(line[line.index("{") :] if "{" in line else line)


def batch_ranges(
    before: SourceOffsets | None, after: SourceOffsets | None, files: Iterable[DataFile]
) -> tuple[OffsetRange, ...]:
    """The ranges of a batch, with the rows that the files hold of each; all rows must lie in them.

    `before` and `after` are the ends of the batch before and of this one.
    """
    firsts: dict[TopicPartition, int] = {}
    lasts: dict[TopicPartition, int] = {}
    counts: dict[TopicPartition, int] = {}
    for file in files:
        span = file.records
        if span is None:
            raise LakeError(f"{file.path} does not hold records of a topic.")
        one = span.topic_partition
        firsts[one] = min(span.first_offset, firsts.get(one, span.first_offset))
        lasts[one] = max(span.last_offset, lasts.get(one, span.last_offset))
        counts[one] = counts.get(one, 0) + file.row_count
    ends = {} if after is None else after.positions
    starts: Mapping[TopicPartition, int] = {}
    if before is not None:
        starts = before.positions
    elif after is not None and after.first is not None:
        starts = after.first
    ranges = []
    for one in sorted(ends.keys() | counts.keys()):
        end = ends.get(one, 0)
        start = starts.get(one, firsts.get(one, end))
        if one in counts and not start <= firsts[one] <= lasts[one] < end:
            raise LakeError(
                f"The batch has records of {one} at offsets {firsts[one]} to {lasts[one]}, but its "
                f"checkpoint says that it reads from {start} up to {end}."
            )
        if start < end:
            ranges.append(OffsetRange(one.topic, one.partition, start, end, counts.get(one, 0)))
    return tuple(ranges)
