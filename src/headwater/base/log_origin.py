"""Which broker a log line comes from, where several of them share a process and a log.

A broker names itself once, when it begins to start. Its tasks, its callbacks and what it has
threads do inherit that, as they inherit every context variable; so nobody else has to know about
it. The broker's id may be found out later than that.
"""

from __future__ import annotations

from contextvars import ContextVar


class LogOrigin:
    """One broker; its owner sets the id when it is known."""

    __slots__ = ("broker_id",)

    def __init__(self) -> None:
        self.broker_id: int | None = None

    def enter(self) -> None:
        """From now on the lines of this task, and of all that it starts, are this broker's."""
        _origin.set(self)


_origin: ContextVar[LogOrigin | None] = ContextVar("log origin", default=None)


def broker_of_line() -> int | None:
    """The id of the broker whose work this is; None if it is nobody's, or not known yet."""
    origin = _origin.get()
    return None if origin is None else origin.broker_id
