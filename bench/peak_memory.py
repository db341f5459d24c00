"""The most memory that a process and its children had in use, watched from outside while they run.

Spark's driver is a Java virtual machine with Python processes below it, and which of them grows is
the question; so each kind is added up for itself. What processes share counts once for each.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path
from types import TracebackType
from typing import Final, Self

_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")
_LOOK_SECONDS: Final = 0.5


class PeakMemory:
    """Watches the family of a process between the begin and the end of a `with` block."""

    def __init__(self, process_id: int) -> None:
        self._process_id = process_id
        self._peaks: dict[str, int] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="peak-memory", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ended.set()
        self._thread.join()

    def bytes_of(self, kind: str) -> int:
        """The most that all processes of a kind, `java` or `python`, had in use together."""
        return self._peaks.get(kind, 0)

    def _watch(self) -> None:
        while not self._ended.is_set():
            for kind, size_bytes in resident_by_kind(self._process_id).items():
                self._peaks[kind] = max(self._peaks.get(kind, 0), size_bytes)
            self._ended.wait(_LOOK_SECONDS)


def resident_by_kind(process_id: int) -> dict[str, int]:
    """Memory in use now, of a process and all below it, by the name of their program."""
    found: dict[str, int] = {}
    family = [process_id]
    for member in family:
        try:
            command = Path(f"/proc/{member}/cmdline").read_bytes().split(b"\0")[0]
            size_bytes = int(Path(f"/proc/{member}/statm").read_text().split()[1]) * _PAGE_BYTES
            for task in Path(f"/proc/{member}/task").iterdir():
                family += map(int, (task / "children").read_text().split())
        except (OSError, IndexError):
            continue  # One that has just ended.
        kind = "java" if command.endswith(b"java") else "python"
        found[kind] = found.get(kind, 0) + size_bytes
    return found
