import datetime
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.pipeline.lake.errors import LakeSchemaError
from headwater.pipeline.lake.lake_table import LakeTable
from headwater.pipeline.lake.table.partition_path import (
    partition_directory,
    value_from_text,
    value_to_text,
)
from headwater.pipeline.lake.writing.parquet_output import ParquetOutput, split
from tests.support.spark.lakes import record, write_record_files, write_rows

VALUES = [
    (pa.string(), ["a", "b=c/d", "x%41", "ä ö", None, "", "007"]),
    (pa.int32(), [1, -2, None, 3]),
    (pa.bool_(), [True, False, None]),
    (pa.date32(), [datetime.date(2026, 1, 31), datetime.date(1, 1, 1), None]),
]


@pytest.mark.parametrize(("kind", "values"), VALUES, ids=[str(kind) for kind, _ in VALUES])
def test_partition_values_come_back(
    tmp_path: Path, kind: pa.DataType, values: list[object]
) -> None:
    table = LakeTable(tmp_path / "lake")
    rows = pa.table({"part": pa.array(values, kind), "number": list(range(len(values)))})
    write_rows(table, rows, partition_by=["part"])
    found = {row["number"]: row["part"] for row in table.read_arrow().to_pylist()}
    # Empty text is null in Hive's directories.
    assert found == {
        number: value or None if value == "" else value for number, value in enumerate(values)
    }
    assert [value_from_text(value_to_text(value), kind) for value in values if value != ""] == [
        value for value in values if value != ""
    ]


def test_directories_are_named_as_spark_names_them() -> None:
    assert partition_directory(["a", "b"], ["x/y=z", None]) == (
        "a=x%2Fy%3Dz/b=__HIVE_DEFAULT_PARTITION__"
    )


@given(
    st.lists(st.tuples(st.one_of(st.none(), st.integers(0, 3)), st.sampled_from("ab")), max_size=30)
)
def test_rows_are_split_by_values_and_keep_their_order(drawn: list[tuple[int | None, str]]) -> None:
    table = pa.table(
        {
            "x": pa.array([each[0] for each in drawn], pa.int64()),
            "y": pa.array([each[1] for each in drawn], pa.string()),
            "n": pa.array(range(len(drawn)), pa.int64()),
        }
    )
    parts = list(split(table, ["x", "y"]))
    keys = [{(row["x"], row["y"]) for row in part.to_pylist()} for part in parts]
    assert all(len(key) == 1 for key in keys)
    assert Counter(key for one in keys for key in one) == Counter(set(drawn))
    for part in parts:
        numbers = part.column("n").to_pylist()
        assert numbers == sorted(numbers)
    assert sum(map(len, parts)) == len(drawn)


def test_records_that_come_out_of_order_are_in_order_in_each_file(tmp_path: Path) -> None:
    table = LakeTable(tmp_path)
    files = write_record_files(table, [record(0, offset) for offset in (5, 3, 4)])
    [file] = files
    assert file.records is not None
    assert (file.records.first_offset, file.records.last_offset, file.row_count) == (3, 5, 3)
    assert Path(file.path).name.startswith("00000-00000000000000000003-")


def test_large_files_are_ended(tmp_path: Path) -> None:
    schema = pa.schema([("text", pa.string())])
    output = ParquetOutput(str(tmp_path), schema, file_bytes_max=1)
    for _ in range(3):
        output.add(pa.table({"text": ["x" * 100]}))
    assert [file.row_count for file in output.finish()] == [1, 1, 1]


def test_what_cannot_be_a_directory_is_refused(tmp_path: Path) -> None:
    schema = pa.schema([("ratio", pa.float64()), ("x", pa.int64())])
    with pytest.raises(LakeSchemaError, match="'ratio' is double"):
        ParquetOutput(str(tmp_path), schema, ["ratio"])
    with pytest.raises(LakeSchemaError, match="needs a column that it is not partitioned by"):
        ParquetOutput(str(tmp_path), pa.schema([("x", pa.int64())]), ["x"])
