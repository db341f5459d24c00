"""How a line of the broker's log looks: as text for people, or as JSON for machines.

Both tell the time with its offset from UTC, the level, the broker, the part of it that speaks, and
the message, on one line whatever the message holds. A traceback follows a line of text indented;
in JSON it is one more field.
"""

from __future__ import annotations

import json
import logging
from datetime import datetime
from typing import Final

from headwater.base.log_origin import broker_of_line
from headwater.base.printable import PrintableFormatter, printable

_TEXT: Final = "%(asctime)s %(levelname)s %(origin)s %(name)s: %(message)s"
_NOBODY: Final = "-"


def formatter_of(name: str) -> logging.Formatter:
    """The formatter that `--log-format` names."""
    return JsonFormatter() if name == "json" else TextFormatter()


def complete(record: logging.LogRecord) -> None:
    """Keep with a record what only the thread that logs it can tell, and let go of all objects."""
    record.msg, record.args = record.getMessage(), None
    record.broker = broker_of_line()
    if record.exc_info:
        record.exc_text = logging.Formatter().formatException(record.exc_info)
        record.exc_info = None


class TextFormatter(PrintableFormatter):
    """`2026-03-01T09:30:00.125+00:00 INFO broker-1 headwater.cluster.member: ...`"""

    def __init__(self) -> None:
        super().__init__(_TEXT)

    def format(self, record: logging.LogRecord) -> str:
        broker = getattr(record, "broker", None)
        record.origin = _NOBODY if broker is None else f"broker-{broker}"
        if record.exc_text:
            record.exc_text = "\n".join(f"  {each}" for each in _lines(record.exc_text))
        return super().format(record)

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:
        return _time(record)


class JsonFormatter(logging.Formatter):
    """One object on each line, in ASCII: no text in it can end the line."""

    def format(self, record: logging.LogRecord) -> str:
        fields: dict[str, object] = {
            "time": _time(record),
            "level": record.levelname,
            "logger": record.name,
            "message": printable(record.getMessage()),
        }
        broker = getattr(record, "broker", None)
        if broker is not None:
            fields["broker"] = broker
        if record.exc_text:
            fields["exception"] = "\n".join(_lines(record.exc_text))
        return json.dumps(fields)


def _time(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created).astimezone().isoformat(timespec="milliseconds")


def _lines(traceback: str) -> list[str]:
    return [printable(line) for line in traceback.splitlines()]
