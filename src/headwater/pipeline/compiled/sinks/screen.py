"""Rows on the screen: each batch as a small table, bounded in rows and width.

All rows of a batch are computed, also those that are not shown: a query that remembers something,
such as the rows of a window, has to take note of all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pyspark.sql import DataFrame

from headwater.base.counted import counted

CELL_WIDTH_MAX: Final = 40


def table_text(
    columns: Sequence[str], rows: Sequence[Sequence[object]], shown: int, row_count: int
) -> str:
    """The first `shown` rows under their headings, and a line that says how many more there are."""
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
    if row_count > shown:
        text.append(f"... and {counted(row_count - shown, 'more row')}")
    return "\n".join(text)


def batch_text(title: str, frame: DataFrame, shown: int) -> tuple[str, int]:
    """A batch as text, empty if it has no rows, and the number of its rows."""
    frame = frame.persist()
    try:
        # First, so that all of it is computed, and once.
        row_count = frame.count()
        rows = [tuple(row) for row in frame.limit(shown).collect()]
    finally:
        frame.unpersist()
    if not rows:
        return "", 0
    return f"{title}\n{table_text(frame.columns, rows, shown, row_count)}\n", row_count


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, (bytes, bytearray)):
        return _cut(bytes(value).decode(errors="backslashreplace"))
    return _cut(str(value))


def _cut(text: str) -> str:
    text = text.replace("\n", " ")
    return text if len(text) <= CELL_WIDTH_MAX else f"{text[: CELL_WIDTH_MAX - 1]}…"
