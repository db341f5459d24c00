"""Tables as Kafka's tools print them, padded with spaces, or the same rows as JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from headwater.base.printable import printable
from headwater.cli.output.colour import Tone, heading, painted

#: Values by the column's key; None is a value that is not there.
Row = Mapping[str, object]


class Column(NamedTuple):
    """Its header, its name in JSON, how wide it is at least, and how its values look.

    `tone` says what a value means to somebody at a terminal.
    """

    header: str
    key: str
    width_min: int = 0
    is_number: bool = False
    tone: Callable[[object], Tone | None] | None = None


class TableForm(NamedTuple):
    """How a table is written: what stands between cells, and for a value that is not there."""

    separator: str = " "
    missing: str = "-"


#: The form of tables that are not Kafka's.
WIDE = TableForm(separator="  ")


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


def print_table(title: str, columns: Sequence[Column], rows: Sequence[Row]) -> None:
    """Print rows below a title, with a blank line behind them."""
    print(heading(printable(title)))
    print_rows(columns, rows, form=WIDE)
    print()


def table_lines(
    columns: Sequence[Column], rows: Sequence[Row], form: TableForm | None = None
) -> Iterator[str]:
    """The header and the rows, each column as wide as its widest cell."""
    form = form or TableForm()
    headers = [column.header for column in columns]
    cells = [[_cell(row[column.key], form.missing) for column in columns] for row in rows]
    widths = [
        max(column.width_min, *(len(line[position]) for line in [headers, *cells]))
        for position, column in enumerate(columns)
    ]
    yield _line(columns, headers, widths, form, [heading] * len(columns))
    for row, line in zip(rows, cells, strict=True):
        yield _line(columns, line, widths, form, [_painter(column, row) for column in columns])


def json_lines(columns: Sequence[Column], rows: Sequence[Row]) -> Iterator[str]:
    """An object for each row."""
    for row in rows:
        yield json.dumps({column.key: row[column.key] for column in columns}, ensure_ascii=False)


def _line(
    columns: Sequence[Column],
    cells: Sequence[str],
    widths: Sequence[int],
    form: TableForm,
    painters: Sequence[Callable[[str], str]],
) -> str:
    """Cells of their widths; colours come last, since a terminal gives them no width."""
    parts = []
    for column, cell, width, paint in zip(columns, cells, widths, painters, strict=True):
        room = " " * (width - len(cell))
        parts.append(room + paint(cell) if column.is_number else paint(cell) + room)
    return form.separator.join(parts).rstrip()


def _painter(column: Column, row: Row) -> Callable[[str], str]:
    tone = None if column.tone is None else column.tone(row[column.key])
    return lambda cell: painted(cell, tone)


def _cell(value: object, missing: str) -> str:
    if value is None or value == {}:
        return missing
    if isinstance(value, Mapping):
        # Partitions by topic.
        text = ";".join(f"{topic}:{','.join(map(str, some))}" for topic, some in value.items())
        return printable(text)
    return printable(str(value))
