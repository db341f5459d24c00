"""Letters in Parquet files that other tools have written anew."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headwater.base.errors import InvalidRecordError
from headwater.base.message_id import MessageId
from headwater.delivery.redrive.letters.json_lines import StoredLetter
from headwater.delivery.redrive.letters.letter_files import read_file

arrow: Any = pytest.importorskip("pyarrow")
parquet: Any = pytest.importorskip("pyarrow.parquet")

ROW = {
    "topic": "dlq.billing",
    "partition": 1,
    "offset": 7,
    "timestamp_ms": 1000,
    "key": b"k",
    "value": b"v",
    "headers": [{"name": "trace", "value": b"abc"}],
}
LETTER = StoredLetter(
    MessageId("dlq.billing", 1, 7), 1000, b"k", b"v", headers=(("trace", b"abc"),)
)


def read(path: Path, types: dict[str, Any] | None = None, **changed: Any) -> StoredLetter:
    table = arrow.Table.from_pylist([ROW | changed])
    for name, kind in (types or {}).items():
        column = arrow.array([changed[name]], kind)
        table = table.set_column(table.schema.get_field_index(name), name, column)
    parquet.write_table(table, path / "letters.parquet")
    (letter,) = read_file(str(path / "letters.parquet"))
    return letter


def test_text_maps_and_what_is_not_there(tmp_path: Path) -> None:
    assert read(tmp_path) == LETTER
    assert read(tmp_path, key="k", value="v", headers=[{"name": "trace", "value": "abc"}]) == LETTER
    as_map = {"headers": arrow.map_(arrow.string(), arrow.binary())}
    assert read(tmp_path, as_map, headers=[("trace", b"abc")]) == LETTER
    assert read(tmp_path, partition=1.0, offset=7.0, timestamp_ms=1000.0) == LETTER
    nothing = {"headers": None, "key": None, "value": None, "timestamp_ms": None}
    bare = read(tmp_path, **nothing)
    assert bare == StoredLetter(LETTER.id, -1, None, None, ())
    assert read(tmp_path, partition=None).id is None


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"value": 5}, "in row 1, the value is neither bytes nor text"),
        ({"timestamp_ms": "noon"}, "in row 1, timestamp_ms is no whole number"),
        ({"headers": ["trace"]}, "in row 1, a header is no pair of a name and a value"),
        ({"headers": [{"name": "a", "value": 1}]}, "in row 1, the header a is neither"),
    ],
)
def test_a_row_that_is_no_letter_is_told(
    tmp_path: Path, changed: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(InvalidRecordError, match=sentence):
        read(tmp_path, **changed)
