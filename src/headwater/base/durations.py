"""Lengths of time as people write them: `250ms`, `30s`, `5m`, `2h`, `7d`, or milliseconds.

For settings, headers and commands. Two places read other languages, and have parsers of their own:
pipeline files take Spark's, with several parts and never without a unit, and `headwater groups
reset-offsets` takes ISO 8601, as Kafka's tool does.
"""

from __future__ import annotations

import re
from typing import Final

from headwater.base.printable import shortened

LONG_MAX: Final = 2**63 - 1

_UNITS_MS: Final = {
    "": 1,
    "ms": 1,
    "s": 1000,
    "m": 60_000,
    "min": 60_000,
    "h": 3_600_000,
    "hour": 3_600_000,
    "d": 86_400_000,
}
#: More digits than any number of 64 bits has are not even read.
_DURATION: Final = re.compile(r"([0-9]{1,19})\s*([a-z]*)", re.ASCII)


def parse_duration_ms(text: str) -> int:
    """The milliseconds that a text stands for; ValueError, with a sentence, if it is no duration.

    What it gives fits 64 bits with a sign: the one limit of all times.
    """
    match = _DURATION.fullmatch(text.strip())
    unit_ms = None if match is None else _UNITS_MS.get(match[2])
    if match is None or unit_ms is None:
        raise ValueError(
            f"{shortened(text)!r} is no length of time, such as 250ms, 30s, 5m, 2h or 7d."
        )
    duration_ms = int(match[1]) * unit_ms
    if duration_ms > LONG_MAX:
        raise ValueError(f"{text!r} is longer than any time there is.")
    return duration_ms


def show_duration(duration_ms: int) -> str:
    """The shortest text that `parse_duration_ms` reads as these milliseconds."""
    for unit in ("d", "h", "m", "s"):
        if duration_ms and duration_ms % _UNITS_MS[unit] == 0:
            return f"{duration_ms // _UNITS_MS[unit]}{unit}"
    return f"{duration_ms}ms"
