"""What happened in a simulation, line by line, and a hash by which two runs are compared.

Every source of events (the network, the disk, the clients) notes what it does. All lines go into
the hash; only the latest are kept, for the person who reads a failure. Two runs of one seed must
give the same hash: where they do not, something takes its decisions from outside the simulation.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable
from typing import Final

LINES_KEPT: Final = 400


class Trace:
    def __init__(self, now_s: Callable[[], float], lines_kept: int = LINES_KEPT) -> None:
        self._now_s = now_s
        self._digest = hashlib.sha256()
        self.line_count = 0
        self.lines: deque[str] = deque(maxlen=lines_kept)

    def note(self, source: str, event: str) -> None:
        """Add a line: who did what, now."""
        line = f"{self._now_s():.6f} {source}: {event}"
        self._digest.update(line.encode())
        self._digest.update(b"\n")
        self.lines.append(line)
        self.line_count += 1

    @property
    def hash(self) -> str:
        """The same for two runs exactly if they noted the same lines."""
        return self._digest.hexdigest()

    def latest(self, count: int = 60) -> str:
        """The last lines, to show with a failure."""
        return "\n".join(list(self.lines)[-count:])
