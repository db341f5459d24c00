"""The options of `format("headwater")`: one row each, from which checks and docs are made.

Names are compared without regard to case, as Spark does. What begins with `kafka.` is a setting of
the client, which checks it; only those that would break what Spark does with the source or the sink
have rows here, to be refused with their reason. An option that nobody has is answered with the
nearest one that somebody has.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from headwater.base.checks import check
from headwater.base.errors import InvalidConfigError

KAFKA_PREFIX: Final = "kafka."
BOOTSTRAP_OPTION: Final = "kafka.bootstrap.servers"
#: Both for reading and for writing.
AUDIT_STAGE_OPTION: Final = "headwater.audit.stage"

_UNIT_MS: Final = {
    "": 1,
    "ms": 1,
    "s": 1000,
    "m": 60_000,
    "min": 60_000,
    "h": 3_600_000,
    "d": 86_400_000,
}
_DURATION: Final = re.compile(r"\s*(\d+)\s*([a-z]*)\s*", re.ASCII)


class OptionError(InvalidConfigError):
    """An option that nobody has, or whose value makes no sense, in one sentence."""


class Direction(StrEnum):
    READ = "read"
    WRITE = "write"
    BOTH = "read and write"


class Mode(StrEnum):
    BATCH = "batch"
    STREAM = "stream"
    BOTH = "batch and stream"


@dataclass(frozen=True, slots=True)
class Option:
    """One option; `default` is as a person reads it, empty where there is none."""

    name: str
    doc: str
    default: str = ""
    direction: Direction = Direction.READ
    mode: Mode = Mode.BOTH
    #: Why it is accepted but changes nothing; empty for those that do something.
    without_effect: str = ""
    #: Why it is refused, and what to use instead; empty for those that may be given.
    refused: str = ""


class OptionTable:
    """The options of one direction. `elsewhere` tells what to do about well-known other names."""

    def __init__(
        self, action: str, rows: Iterable[Option], elsewhere: Mapping[str, str] | None = None
    ) -> None:
        self.action = action
        self._rows: dict[str, Option] = {}
        for row in rows:
            check(row.name.lower() not in self._rows, f"two rows for the option {row.name}")
            self._rows[row.name.lower()] = row
        self._elsewhere = {name.lower(): text for name, text in (elsewhere or {}).items()}

    def __iter__(self) -> Iterator[Option]:
        return iter(self._rows.values())

    def __contains__(self, name: str) -> bool:
        return name.lower() in self._rows

    def __getitem__(self, name: str) -> Option:
        return self._rows[name.lower()]

    def check(self, options: Mapping[str, str], mode: Mode = Mode.BOTH) -> None:
        """Raise `OptionError` for names that cannot be given; values are left to their readers."""
        for name in options:
            row = self._rows.get(name.lower())
            if row is None:
                if not name.lower().startswith(KAFKA_PREFIX):
                    raise self._unknown(name)
            elif row.refused:
                raise OptionError(f"The option '{row.name}' cannot be given: {row.refused}")
            elif Mode.BOTH not in (mode, row.mode) and row.mode is not mode:
                raise OptionError(
                    f"The option '{row.name}' is for {row.mode} queries only, "
                    f"and this is a {mode} query."
                )
        lowered = {name.lower() for name in options}
        if BOOTSTRAP_OPTION not in lowered:
            raise OptionError(
                f"The option '{BOOTSTRAP_OPTION}' is missing: it names the brokers to connect to, "
                "as in 'localhost:9092'."
            )

    def _unknown(self, name: str) -> OptionError:
        elsewhere = self._elsewhere.get(name.lower())
        if elsewhere is not None:
            return OptionError(f"The option '{name}' cannot be given to {self.action}: {elsewhere}")
        known = [key for key, row in self._rows.items() if not row.refused]
        # A setting of the client without its prefix, such as bootstrap.servers, is the usual slip.
        if KAFKA_PREFIX + name.lower() in self._rows:
            return OptionError(f"Unknown option '{name}': did you mean '{KAFKA_PREFIX}{name}'?")
        near = difflib.get_close_matches(name.lower(), known, n=1)
        if near:
            return OptionError(
                f"Unknown option '{name}': did you mean '{self._rows[near[0]].name}'?"
            )
        return OptionError(
            f"Unknown option '{name}' of {self.action}; a setting of the client is given as "
            f"'{KAFKA_PREFIX}{name}'."
        )


def client_settings(options: Mapping[str, str]) -> dict[str, str]:
    """What is for the client, with the prefix off."""
    return {
        name[len(KAFKA_PREFIX) :].lower(): value
        for name, value in options.items()
        if name.lower().startswith(KAFKA_PREFIX)
    }


def stage_name(options: Mapping[str, str]) -> str:
    """The audit stage that is counted; empty for none."""
    for name, value in options.items():
        if name.lower() == AUDIT_STAGE_OPTION:
            if not value.strip():
                raise OptionError(
                    f"The option '{AUDIT_STAGE_OPTION}' cannot be empty: it names a stage."
                )
            return value.strip()
    return ""


def integer_option(name: str, text: str, lower: int = 1) -> int:
    """The value of an option that is a whole number."""
    try:
        number = int(text.strip())
    except ValueError:
        number = None
    if number is None or number < lower:
        raise OptionError(
            f"The option '{name}' cannot be {text!r}: it must be a whole number of at least "
            f"{lower}."
        )
    return number


def boolean_option(name: str, text: str) -> bool:
    """The value of an option that is true or false."""
    lowered = text.strip().lower()
    if lowered not in ("true", "false"):
        raise OptionError(f"The option '{name}' cannot be {text!r}: it must be true or false.")
    return lowered == "true"


def duration_option_ms(name: str, text: str) -> int:
    """The value of an option that is a time, such as 500ms, 10s, 15m, 2h or 1d."""
    match = _DURATION.fullmatch(text.lower())
    if match is None or match[2] not in _UNIT_MS:
        raise OptionError(
            f"The option '{name}' cannot be {text!r}: it must be a time such as 500ms, 10s or 15m."
        )
    return int(match[1]) * _UNIT_MS[match[2]]


def choice_option(name: str, text: str, choices: Iterable[str]) -> str:
    """The value of an option that is one of a few words."""
    lowered = text.strip().lower()
    allowed = list(choices)
    if lowered not in allowed:
        near = difflib.get_close_matches(lowered, allowed, n=1)
        hint = f"; did you mean '{near[0]}'?" if near else f": it must be {' or '.join(allowed)}."
        raise OptionError(f"The option '{name}' cannot be {text!r}{hint}")
    return lowered
