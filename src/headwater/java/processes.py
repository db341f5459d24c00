"""Java processes that never stay behind.

Each is its own process group, so that Ctrl-C in a terminal reaches the one that started it, which
then stops them in order. Should that be killed itself, the kernel kills them (see `guard.py`): it
does so when the thread that forked them ends, so all of them are forked by one thread that lives as
long as this process. Elsewhere than on Linux an exit handler has to do.
"""

import atexit
import functools
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO

GUARD = Path(__file__).with_name("guard.py")

Stream = IO[bytes] | int | None


def start_process(
    command: Sequence[str],
    *,
    stdin: Stream = subprocess.DEVNULL,
    stdout: Stream = subprocess.PIPE,
    stderr: Stream = subprocess.PIPE,
) -> subprocess.Popen[bytes]:
    """Start `command`; it is killed when this process ends. End it with `kill_process`."""

    def fork() -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            # -I and -S: the guard needs the standard library and starts in a few milliseconds.
            [sys.executable, "-I", "-S", str(GUARD), str(os.getpid()), *command],
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            start_new_session=True,
        )

    process = _launcher(os.getpid()).submit(fork).result()
    _register_exit_handler()
    _running.add(process)
    return process


def kill_process(process: subprocess.Popen[bytes]) -> None:
    """End `process` at once, if it still runs, and collect it."""
    if process.poll() is None:
        # Its group has its id, because it leads a session; nothing else is in it.
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    forget_process(process)


def forget_process(process: subprocess.Popen[bytes]) -> None:
    """`process` has ended and was collected."""
    _running.discard(process)


_running: set[subprocess.Popen[bytes]] = set()


@functools.cache
def _launcher(process_id: int) -> ThreadPoolExecutor:
    # By process id, because a forked copy of this process does not inherit the thread.
    return ThreadPoolExecutor(max_workers=1, thread_name_prefix=f"launcher-{process_id}")


@functools.cache
def _register_exit_handler() -> None:
    def kill_all() -> None:
        for process in list(_running):
            kill_process(process)

    atexit.register(kill_all)
