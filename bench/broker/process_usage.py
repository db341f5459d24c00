"""What a server costs the machine: CPU time and resident memory of a process and its children."""

from __future__ import annotations

import os
from pathlib import Path

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def cpu_seconds(pid: int) -> float:
    """User and kernel time so far, of the process, of its children and of those that have ended.

    The kernel tells it in hundredths of a second.
    """
    return sum(_cpu_seconds_of(member) for member in _family(pid))


def own_cpu_seconds(pid: int) -> float:
    """The same of the process alone."""
    return sum(_cpu_ticks_of(pid)[:2]) / TICKS_PER_S


def resident_bytes(pid: int) -> int:
    """Memory in use now, of the process and its children; what they share counts each time."""
    return sum(
        int(_read(Path(f"/proc/{member}/statm")).split()[1]) * _PAGE_BYTES
        for member in _family(pid)
    )


def _cpu_seconds_of(pid: int) -> float:
    return sum(_cpu_ticks_of(pid)) / TICKS_PER_S


def _cpu_ticks_of(pid: int) -> list[int]:
    """utime, stime, and the same of children that were waited for."""
    # Behind the name, which may hold spaces and ends with a bracket.
    fields = _read(Path(f"/proc/{pid}/stat")).rpartition(")")[2].split()
    return list(map(int, fields[11:15]))


def _family(pid: int) -> list[int]:
    """The process, its children and theirs."""
    found = [pid]
    for member in found:
        for task in Path(f"/proc/{member}/task").iterdir():
            try:
                found += map(int, (task / "children").read_text().split())
            except OSError:  # A thread that has just ended.
                continue
    return found


def _read(path: Path) -> str:
    return path.read_text(encoding="ascii", errors="replace")
