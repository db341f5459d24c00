"""One run of a client in a process of its own, told what to do and telling what came of it as JSON.

`python -m MODULE JOB ARGUMENTS` does one job and prints its result; `run_job` and `start_job` are
for the other side of that pipe, `answer` for this one. A process of its own, so that one run's
threads and memory are not there in the next, and so that Ctrl-C can end it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from typing import Any

from headwater.java.processes import forget_process, kill_process, start_process

TIMEOUT_S = 300.0


def start_job(module: str, job: str, **arguments: object) -> subprocess.Popen[bytes]:
    """Start a job; `finish_job` waits for it."""
    return start_process([sys.executable, "-m", module, job, json.dumps(arguments)])


def finish_job(process: subprocess.Popen[bytes]) -> Any:
    """What the job came to; it is ended if it takes too long or this process is told to stop."""
    try:
        stdout, stderr = process.communicate(timeout=TIMEOUT_S)
    except BaseException:
        kill_process(process)
        raise
    forget_process(process)
    if process.returncode != 0:
        raise RuntimeError(f"A client failed:\n{stderr.decode(errors='replace')}")
    return json.loads(stdout)


def run_job(module: str, job: str, **arguments: object) -> Any:
    return finish_job(start_job(module, job, **arguments))


def answer(jobs: Mapping[str, Callable[..., object]]) -> None:
    """Do what this process was started for."""
    print(json.dumps(jobs[sys.argv[1]](**json.loads(sys.argv[2]))))
