"""Text that somebody else chose, made fit for a log or a terminal.

The name of a group or a client may hold anything. A newline in it would let it write lines of its
own into a broker's log, and an escape sequence would steer the terminal of whoever looks at it. So
what is not printable is shown as Python writes it, such as `\\n` or `\\x1b`.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from itertools import islice
from typing import Final

#: More of a name than this, or more names, does not help whoever reads a log.
LENGTH_MAX: Final = 100
NAMED_MAX: Final = 10


def printable(text: str) -> str:
    """The text on one line, without anything that does more than show."""
    if text.isprintable():
        return text
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode("ascii")
        for each in text
    )


def shortened(text: str, length_max: int = LENGTH_MAX) -> str:
    """The text, or as much of it as tells what it is."""
    return text if len(text) <= length_max else f"{text[:length_max]}..."


def listed(names: Collection[object], named_max: int = NAMED_MAX) -> str:
    """A list for a sentence: the first few, and how many more there are."""
    shown = ", ".join(str(each) for each in islice(names, named_max))
    return shown if len(names) <= named_max else f"{shown} and {len(names) - named_max:,} more"


class PrintableFormatter(logging.Formatter):
    """One line for each record, whatever its arguments hold.

    A traceback keeps its lines. They are indented: so whatever the text of an exception holds, none
    of it begins as a record does.
    """

    def formatMessage(self, record: logging.LogRecord) -> str:
        record.message = printable(record.message)
        return super().formatMessage(record)

    def formatException(self, ei: object) -> str:
        text = super().formatException(ei)  # type: ignore[arg-type]
        return "\n".join(f"  {printable(line)}" for line in text.splitlines())
