"""What a test asks of a simulated disk: errors on certain operations, and a power cut.

Each operation has a name, by which faults and hooks know it. Those in `CHANGES` are the ones after
which a power cut can find something else than before, so a test that cuts the power before every
operation need only count these.
"""

from __future__ import annotations

import errno
from collections.abc import Collection, Iterable
from dataclasses import dataclass

READS = frozenset({"open", "read", "map", "stat", "list_dir", "lock"})
WRITES = frozenset({"create", "write", "truncate", "make_dir", "rename", "remove", "remove_dir"})
SYNCS = frozenset({"sync", "sync_dir"})
CHANGES = WRITES | SYNCS
OPERATIONS = READS | CHANGES


class SimulatedCrash(BaseException):
    """The power is off.

    It is no `Exception`, so that code which survives any error does not survive this one.
    """


@dataclass(slots=True)
class Fault:
    """An error that operations of some kinds meet at a path or below it.

    With `torn`, a write that fails has written some of its bytes before. A sync that fails forgets
    some of what it should have written, as an operating system does: see `File`'s contract.
    """

    operations: Collection[str] = OPERATIONS
    under: str = "/"
    error: int = errno.EIO
    #: How many such operations go well before it begins, and how many it then hits.
    skip_count: int = 0
    hit_count_max: int | None = None
    torn: bool = False
    hit_count: int = 0

    def hits(self, operation: str, paths: Iterable[str]) -> bool:
        """Whether this operation fails; asking counts as the operation."""
        if operation not in self.operations:
            return False
        if not any(_is_under(path, self.under) for path in paths):
            return False
        if self.skip_count > 0:
            self.skip_count -= 1
            return False
        if self.hit_count_max is not None and self.hit_count >= self.hit_count_max:
            return False
        self.hit_count += 1
        return True


def _is_under(path: str, top: str) -> bool:
    path, top = "/" + path.strip("/"), "/" + top.strip("/")
    return top == "/" or path == top or path.startswith(top + "/")


class PowerCut:
    """A hook for `FaultyDisk.before_operation`: cuts the power before the n-th change, from 0.

    Where a run ends without having met it, `count` is the number of changes that the run makes.
    """

    def __init__(self, at: int, operations: Collection[str] = CHANGES) -> None:
        self.at = at
        self.count = 0
        self._operations = operations

    def __call__(self, operation: str, path: str) -> None:
        if operation not in self._operations:
            return
        if self.count == self.at:
            raise SimulatedCrash(f"the power went before {operation} of {path}")
        self.count += 1
