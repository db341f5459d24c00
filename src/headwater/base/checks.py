"""Invariants that are checked in production.

`assert` is no good for this, because `python -O` removes it together with the safety it stood for.
A failed check means that the program is wrong, not that a peer or a user is, so nobody catches
`InvariantError` in order to carry on: it exists to stop the operation before a wrong state is
written down. What a peer or a file may get wrong is reported by `KafkaError` and its kin instead.
"""

from typing import TypeVar

T = TypeVar("T")


class InvariantError(Exception):
    """Something that this program promises itself does not hold."""


def check(condition: object, message: str, *args: object) -> None:
    """Raise `InvariantError` unless `condition` is true.

    `args` are put into `message` with `%` only on failure, so a check on a hot path costs one call.
    """
    if not condition:
        raise InvariantError(message % args if args else message)


def require(value: T | None, message: str, *args: object) -> T:
    """The value, which is there unless this program is wrong; None fails as `check` does."""
    if value is None:
        raise InvariantError(message % args if args else message)
    return value
