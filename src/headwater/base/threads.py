"""How the owner of an event loop has something done in a thread, whoever's thread it is.

The loop must not wait for a disk, nor for work that takes long, so whoever has such work is given a
`RunInThread` and knows nothing more of threads. A broker gives the threads of a pool; the simulator
gives none at all, and lets virtual time pass instead, so that one seed leads to the same run again.

What the work needs it brings along, and what it finds out it returns: whoever waits gets that, or
has raised what the work raised. Whoever stops waiting does not stop the work, since a thread cannot
be told to.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

T = TypeVar("T")


class RunInThread(Protocol):
    """Do `work` elsewhere, and wait for what it returns or raises."""

    def __call__(self, work: Callable[[], T], /) -> Awaitable[T]: ...
