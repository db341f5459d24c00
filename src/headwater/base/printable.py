"""Text that somebody else chose, made fit for a log or a terminal.

The name of a group or a client may hold anything. A newline in it would let it write lines of its
own into a broker's log, and an escape sequence would steer the terminal of whoever looks at it. So
what is not printable is shown as Python writes it, such as `\\n` or `\\x1b`.
"""

from __future__ import annotations

import logging


def printable(text: str) -> str:
    """The text on one line, without anything that does more than show."""
    if text.isprintable():
        return text
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode("ascii")
        for each in text
    )


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
