"""Rows on the screen: each batch as a small table, bounded in rows and width."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pyspark.sql import DataFrame

CELL_WIDTH_MAX: Final = 40


def table_text(columns: Sequence[str], rows: Sequence[Sequence[object]], shown: int) -> str:
    """The first `shown` rows under their headings, and a line that says if there are more."""
    cells = [[_cell(value) for value in row] for row in rows[:shown]]
    heads = [_cut(name) for name in columns]
    widths = [max(map(len, column)) for column in zip(heads, *cells, strict=True)]
    numeric = [
        bool(rows) and all(isinstance(row[at], (int, float)) for row in rows[:shown])
        for at in range(len(columns))
    ]
    lines = [heads, ["-" * width for width in widths], *cells]
    text = [
        "  ".join(
            value.rjust(width) if right else value.ljust(width)
            for value, width, right in zip(line, widths, numeric, strict=True)
        ).rstrip()
        for line in lines
    ]
    if len(rows) > shown:
        text.append("... and more")
    return "\n".join(text)


def batch_text(title: str, frame: DataFrame, shown: int) -> str:
    """A batch as text, empty if it has no rows."""
    rows = [tuple(row) for row in frame.limit(shown + 1).collect()]
    return f"{title}\n{table_text(frame.columns, rows, shown)}\n" if rows else ""


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, (bytes, bytearray)):
        return _cut(bytes(value).decode(errors="backslashreplace"))
    return _cut(str(value))


def _cut(text: str) -> str:
    text = text.replace("\n", " ")
    return text if len(text) <= CELL_WIDTH_MAX else f"{text[: CELL_WIDTH_MAX - 1]}…"
