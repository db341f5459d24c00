import json
from pathlib import Path

import pytest

from headwater.base.ids import TopicPartition
from headwater.pipeline.connector.offset_json import SourceOffsets
from headwater.pipeline.lake.checkpoint import (
    batch_ends,
    batch_ranges,
    checkpoint_writer,
    parse_offset_log,
)
from headwater.pipeline.lake.errors import LakeError
from headwater.pipeline.lake.table.data_file import DataFile, RecordSpan


def offsets(first: dict[int, int] | None = None, **ends: int) -> SourceOffsets:
    return SourceOffsets(
        {TopicPartition("t", int(name[1:])): offset for name, offset in ends.items()},
        first=None
        if first is None
        else {TopicPartition("t", partition): offset for partition, offset in first.items()},
    )


def file(partition: int, first: int, last: int) -> DataFile:
    span = RecordSpan("t", partition, first, last)
    return DataFile(f"data/{partition}-{first}", 1, last - first + 1, (), span)


def found(*ranges: object) -> list[tuple[int, int, int, int]]:
    return [(each.partition, each.start, each.end, each.row_count) for each in ranges]  # type: ignore[attr-defined]


def test_a_batch_begins_where_the_one_before_ended() -> None:
    files = [file(0, 11, 14), file(0, 15, 19), file(1, 3, 3)]
    ranges = batch_ranges(offsets(p0=10, p1=3), offsets(p0=20, p1=5), files)
    assert found(*ranges) == [(0, 10, 20, 9), (1, 3, 5, 1)]
    assert batch_ranges(offsets(p0=10), offsets(p0=10), []) == ()
    # Nothing readable there, but passed over: that is covered too.
    assert found(*batch_ranges(offsets(p0=10), offsets(p0=12), [])) == [(0, 10, 12, 0)]


def test_the_first_batch_says_where_it_begins() -> None:
    assert found(*batch_ranges(None, offsets({0: 5}, p0=20), [file(0, 7, 9)])) == [(0, 5, 20, 3)]


def test_a_new_partition_begins_with_its_first_record() -> None:
    ranges = batch_ranges(offsets(p0=10), offsets(p0=10, p1=8), [file(1, 2, 7)])
    assert found(*ranges) == [(1, 2, 8, 6)]


@pytest.mark.parametrize("one", [file(0, 9, 12), file(0, 15, 20), file(3, 0, 0)])
def test_records_outside_of_the_batch_are_refused(one: DataFile) -> None:
    with pytest.raises(LakeError, match="but its checkpoint says"):
        batch_ranges(offsets(p0=10), offsets(p0=20), [one])


def test_a_file_of_spark_is_read(tmp_path: Path) -> None:
    (tmp_path / "offsets").mkdir()
    text = 'v1\n{"batchWatermarkMs":0}\n' + json.dumps(offsets(p0=4).to_json())
    (tmp_path / "offsets" / "3").write_text(text)
    assert batch_ends(tmp_path, 3) == offsets(p0=4)
    assert batch_ends(f"file://{tmp_path}", 3) == offsets(p0=4)
    assert batch_ends(tmp_path, 2) is None
    assert parse_offset_log("v1\n{}\n-", "x") is None
    with pytest.raises(LakeError, match="x has the offsets of 2 sources"):
        parse_offset_log("v1\n{}\n{}\n{}", "x")
    with pytest.raises(LakeError, match="is not a batch of Spark's offset log"):
        parse_offset_log("hello", "x")


def test_a_writer_is_named_after_its_checkpoint(tmp_path: Path) -> None:
    with pytest.raises(LakeError, match="does not hold the id of a streaming query"):
        checkpoint_writer(tmp_path, "totals")
    (tmp_path / "metadata").write_text('{"id":"1234"}')
    assert checkpoint_writer(tmp_path, "totals") == "totals@1234"
