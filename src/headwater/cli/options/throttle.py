"""How fast replicas may be copied, on a command line: `50MB`, `500kB`, `1GiB`, bytes, or `none`."""

from __future__ import annotations

import re
from typing import Final

import typer

OPTION: Final = "--throttle"
NONE: Final = "none"

_UNITS: Final = {
    "": 1,
    "b": 1,
    "kb": 1000,
    "mb": 1000**2,
    "gb": 1000**3,
    "kib": 1 << 10,
    "mib": 1 << 20,
    "gib": 1 << 30,
}
_RATE: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?([a-z]*)(?:/s)?", re.ASCII)
_RATE_MAX: Final = 2**63 - 1


def parse_throttle(text: str, option: str = OPTION) -> int:
    """Bytes a second; 0 for none."""
    words = text.strip().lower()
    if words == NONE:
        return 0
    match = _RATE.fullmatch(words)
    unit = None if match is None else _UNITS.get(match[2])
    if match is None or unit is None:
        raise _fault(f"{text!r} is no rate: give bytes a second, as in 50MB, or {NONE}", option)
    rate = int(float(match[1]) * unit)
    if rate > _RATE_MAX:
        raise _fault(f"{text!r} is more than any broker carries", option)
    if rate == 0:
        raise _fault(f"{text!r} lets nothing through: give a rate above 0, or {NONE}", option)
    return rate


def _fault(message: str, option: str) -> typer.BadParameter:
    return typer.BadParameter(message, param_hint=option)
