"""What the operating system says about this process, under the names that Prometheus' own
libraries use for it, so that dashboards made for those work.

On systems without /proc only the CPU time is known.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator

from headwater.broker.metrics.exposition import counter, gauge


def process_metrics() -> Iterator[str]:
    """The families about the process."""
    yield from counter(
        "process_cpu_seconds_total",
        "CPU time that the process has used, in user and system mode.",
        [("", time.process_time())],
    )
    yield from gauge(
        "process_threads", "Python threads of the process.", [("", threading.active_count())]
    )
    memory_bytes = resident_bytes()
    if memory_bytes is not None:
        yield from gauge(
            "process_resident_memory_bytes",
            "Memory that the process holds in RAM.",
            [("", memory_bytes)],
        )
    files = open_files()
    if files is not None:
        yield from gauge("process_open_fds", "Open files and sockets.", [("", files)])


def resident_bytes() -> int | None:
    """Memory in RAM, None where it is not known."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return None


def open_files() -> int | None:
    """Open descriptors, None where they are not known."""
    try:
        return len(os.listdir("/proc/self/fd")) - 1
    except OSError:
        return None
