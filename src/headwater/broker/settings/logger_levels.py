"""The levels of the broker's loggers, under the names that Kafka gives them.

Python has no FATAL and no TRACE of its own: they are CRITICAL, and anything below DEBUG. A logger
without a level of its own has that of the nearest one above it.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator
from typing import Final

from headwater.base.errors import ErrorCode, KafkaError

ROOT: Final = "root"
LEVELS: Final = {
    "FATAL": logging.CRITICAL,
    "ERROR": logging.ERROR,
    "WARN": logging.WARNING,
    "INFO": logging.INFO,
    "DEBUG": logging.DEBUG,
    "TRACE": logging.DEBUG // 2,
}


def logger_levels(names: Collection[str] | None = None) -> Iterator[tuple[str, str]]:
    """The loggers that exist, or those of `names`, and the levels in force."""
    existing = [ROOT, *sorted(logging.root.manager.loggerDict)]
    for name in existing:
        if names is None or name in names:
            yield name, _level_name(_logger(name).getEffectiveLevel())


def check_level(name: str, level: str | None) -> None:
    """Whether a logger can have a level, None for that of the one above; raises `KafkaError`."""
    if name != ROOT and name not in logging.root.manager.loggerDict:
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"There is no logger {name!r}.")
    if level is None and name == ROOT:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, "The root logger's level can be set but not removed."
        )
    if level is not None and level not in LEVELS:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG,
            f"The logger {name} cannot have the level {level!r}: it must be one of "
            f"{', '.join(LEVELS)}.",
        )


def set_level(name: str, level: str | None) -> None:
    """Set a level that was checked."""
    _logger(name).setLevel(logging.NOTSET if level is None else LEVELS[level])


def _logger(name: str) -> logging.Logger:
    return logging.root if name == ROOT else logging.getLogger(name)


def _level_name(level: int) -> str:
    return next((name for name, number in LEVELS.items() if level >= number), "TRACE")
