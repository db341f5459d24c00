"""Letters as a Parquet file, for those who look at many of them with other tools; needs pyarrow."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, BinaryIO, Final, Self

from headwater.base.message_id import MessageId
from headwater.client.columns.arrow.library import load_arrow
from headwater.delivery.redrive.letters.json_lines import LetterLineError, StoredLetter
from headwater.delivery.redrive.letters.letter import Letter
from headwater.wire.records import Header

_ROWS: Final = 5000
_NEEDED: Final = ("topic", "partition", "offset", "timestamp_ms", "key", "value", "headers")


class ParquetWriter:
    """Writes letters to an open file; a context manager, whose end completes the file."""

    def __init__(self, file: BinaryIO) -> None:
        arrow = self._arrow = load_arrow()
        header = arrow.struct([("name", arrow.string()), ("value", arrow.binary())])
        self._schema = arrow.schema(
            [
                ("topic", arrow.string()),
                ("partition", arrow.int32()),
                ("offset", arrow.int64()),
                ("timestamp_ms", arrow.int64()),
                ("key", arrow.binary()),
                ("value", arrow.binary()),
                ("headers", arrow.list_(header)),
                ("origin", arrow.string()),
                ("group", arrow.string()),
                ("attempts", arrow.int64()),
                ("last_failure_ms", arrow.int64()),
                ("error_class", arrow.string()),
                ("error_message", arrow.string()),
                ("redrives", arrow.int64()),
            ]
        )
        self._writer = _parquet().ParquetWriter(file, self._schema)

    def write(self, letters: Sequence[Letter]) -> None:
        rows = [_row(letter) for letter in letters]
        self._writer.write_table(self._arrow.Table.from_pylist(rows, schema=self._schema))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._writer.close()


def read_parquet(path: str) -> Iterator[StoredLetter]:
    """The letters of a file; `LetterLineError` if it is none of ours."""
    arrow = load_arrow()
    try:
        file = _parquet().ParquetFile(path)
    except arrow.ArrowInvalid as error:
        raise LetterLineError(f"it is not Parquet: {error}") from None
    with file:
        missing = [name for name in _NEEDED if name not in file.schema_arrow.names]
        if missing:
            raise LetterLineError(f"it has no column {missing[0]}")
        rows = (
            row
            for batch in file.iter_batches(_ROWS, columns=list(_NEEDED))
            for row in batch.to_pylist()
        )
        for number, row in enumerate(rows, 1):
            try:
                yield _stored(row)
            except LetterLineError as error:
                raise LetterLineError(f"in row {number}, {error}") from None


def _stored(row: Mapping[str, Any]) -> StoredLetter:
    """A row as other tools may have written it anew: with text for bytes, say, or a map."""
    topic, partition, offset = (row[name] for name in ("topic", "partition", "offset"))
    place = None
    if isinstance(topic, str) and _is_whole(partition) and _is_whole(offset):
        place = MessageId(topic, int(partition), int(offset))
    time_ms = -1 if row["timestamp_ms"] is None else row["timestamp_ms"]
    if not _is_whole(time_ms):
        raise LetterLineError("timestamp_ms is no whole number")
    return StoredLetter(
        place,
        int(time_ms),
        _bytes(row["key"], "the key"),
        _bytes(row["value"], "the value"),
        tuple(map(_header, row["headers"] or ())),
    )


def _header(pair: object) -> Header:
    match pair:
        case {"name": str(name), "value": value} | (str(name), value):
            return name, _bytes(value, f"the header {name}")
    raise LetterLineError("a header is no pair of a name and a value")


def _is_whole(number: object) -> bool:
    """Whether it is one, or a decimal that some tool has made of one."""
    return isinstance(number, int) or (isinstance(number, float) and number.is_integer())


def _bytes(value: object, what: str) -> bytes | None:
    if isinstance(value, str):
        return value.encode()
    if value is None or isinstance(value, bytes):
        return value
    raise LetterLineError(f"{what} is neither bytes nor text")


def _parquet() -> Any:
    """A part of pyarrow that has no types."""
    return importlib.import_module("pyarrow.parquet")


def _row(letter: Letter) -> dict[str, Any]:
    record, failure = letter.record, letter.failure
    return {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp_ms": record.timestamp,
        "key": record.key,
        "value": record.value,
        "headers": [{"name": name, "value": value} for name, value in record.headers],
        "origin": None if letter.origin is None else str(letter.origin),
        "group": failure.group,
        "attempts": failure.attempts,
        "last_failure_ms": letter.last_failure_ms,
        "error_class": failure.error_class,
        "error_message": failure.error_message,
        "redrives": letter.redrives,
    }
