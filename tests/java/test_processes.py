"""No process stays behind, whatever becomes of the one that started it."""

import os
import select
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from headwater.java.processes import kill_process, start_process

SLEEP = ["/bin/sleep", "1000"]
# A process that starts another, tells its id, and waits to be told how to end.
PARENT = f"""
import os, signal, sys
from headwater.java.processes import start_process
print(start_process({SLEEP!r}).pid, flush=True)
sys.stdin.readline()
{{end}}
"""


@contextmanager
def watched(pid: int) -> Iterator[select.poll]:
    """A poll that becomes ready when the process has ended."""
    descriptor = os.pidfd_open(pid)
    try:
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        yield poll
    finally:
        os.close(descriptor)


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="needs Linux's pidfd")
@pytest.mark.parametrize(
    "end", ["os.kill(os.getpid(), signal.SIGKILL)", "os._exit(1)", "raise SystemExit", "pass"]
)
def test_it_ends_with_the_process_that_started_it(end: str) -> None:
    command = [sys.executable, "-c", PARENT.format(end=end)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent:
        assert parent.stdin is not None and parent.stdout is not None
        with watched(int(parent.stdout.readline())) as ended:
            assert ended.poll(0) == []
            parent.stdin.write(b"\n")
            parent.stdin.close()
            assert ended.poll(10_000) != []


def test_it_outlives_the_thread_that_started_it() -> None:
    started: list[subprocess.Popen[bytes]] = []
    thread = threading.Thread(target=lambda: started.append(start_process(SLEEP)))
    thread.start()
    thread.join()
    [process] = started
    try:
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.2)
    finally:
        kill_process(process)
    assert process.returncode == -9
    for stream in (process.stdout, process.stderr):
        assert stream is not None
        stream.close()


def test_it_leads_a_process_group_of_its_own() -> None:
    process = start_process(SLEEP, stdout=None, stderr=None)
    try:
        assert os.getpgid(process.pid) == process.pid != os.getpgid(0)
    finally:
        kill_process(process)


def test_killing_it_twice_is_harmless() -> None:
    process = start_process(SLEEP, stdout=None, stderr=None)
    kill_process(process)
    kill_process(process)
    assert process.returncode == -9
