"""Tables as Kafka's tools print them, padded with spaces, or the same rows as JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from headwater.base.printable import printable

#: Values by the column's key; None is a value that is not there.
Row = Mapping[str, object]


class Column(NamedTuple):
    """Its header, its name in JSON, and how wide it is at least."""

    header: str
    key: str
    width_min: int = 0


class TableForm(NamedTuple):
    """How a table is written: what stands between cells, and for a value that is not there."""

    separator: str = " "
    missing: str = "-"


def print_rows(
    columns: Sequence[Column],
    rows: Sequence[Row],
    *,
    as_json: bool = False,
    form: TableForm | None = None,
) -> None:
    """Print rows as a table with a header, or as a JSON object each."""
    lines = json_lines(columns, rows) if as_json else table_lines(columns, rows, form)
    for line in lines:
        print(line)


def table_lines(
    columns: Sequence[Column], rows: Sequence[Row], form: TableForm | None = None
) -> Iterator[str]:
    """The header and the rows, each column as wide as its widest cell."""
    form = form or TableForm()
    cells = [
        [column.header for column in columns],
        *([_cell(row[column.key], form.missing) for column in columns] for row in rows),
    ]
    widths = [
        max(column.width_min, *(len(line[position]) for line in cells))
        for position, column in enumerate(columns)
    ]
    for line in cells:
        padded = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        yield form.separator.join(padded).rstrip()


def json_lines(columns: Sequence[Column], rows: Sequence[Row]) -> Iterator[str]:
    """An object for each row."""
    for row in rows:
        yield json.dumps({column.key: row[column.key] for column in columns}, ensure_ascii=False)


def _cell(value: object, missing: str) -> str:
    if value is None or value == {}:
        return missing
    if isinstance(value, Mapping):
        # Partitions by topic.
        text = ";".join(f"{topic}:{','.join(map(str, some))}" for topic, some in value.items())
        return printable(text)
    return printable(str(value))
