"""Very many dead letters, sent back by `headwater dlq redrive`: how many a second.

The clock runs while the command does, its start and end included; then what arrived is counted.
"""

from __future__ import annotations

import subprocess
import sys
import time

from bench.broker.servers import Server
from bench.job_process import finish_job
from bench.retry.redrive_load import start_job
from bench.retry.run import Run
from bench.retry.sizes import PARTITION_COUNT
from bench.table import Row

_TIMEOUT_S = 1800.0
_ALLOWED = {"errors.deadletterqueue.group.enable": "true"}


def measure(run: Run) -> None:
    run.attempt(f"Redrive of {run.sizes.letter_count:,} dead letters", lambda: _add_row(run))


def _add_row(run: Run) -> None:
    count = run.sizes.letter_count
    with (
        run.broker() as broker,
        broker.topic(run.name("orders"), PARTITION_COUNT) as origin,
        broker.topic(run.name("dlq"), 1, _ALLOWED) as letters,
    ):
        common = {"bootstrap": broker.bootstrap, "letter_count": count}
        finish_job(start_job("write_letters", topic=letters, origin=origin, **common))
        begun_s = time.perf_counter()
        _redrive(broker, letters)
        seconds = time.perf_counter() - begun_s
        arrived = {"topic": origin, "partition_count": PARTITION_COUNT}
        found = finish_job(start_job("count_arrived", **arrived, **common))
    if found != count:
        raise RuntimeError(f"{found:,} of {count:,} letters are back")
    note = f"{count:,} letters of 100 B in {seconds:.1f} s, each once"
    run.results.rows.append(
        Row.single("Redrive to the topic", "letters/s", count / seconds, note=note)
    )


def _redrive(broker: Server, letters: str) -> None:
    """As an operator does it."""
    command = [sys.executable, "-m", "headwater", "dlq", "redrive", letters]
    options = ["--to", "origin", "--bootstrap-server", broker.bootstrap]
    done = subprocess.run(
        [*command, *options], capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
    )
    if done.returncode:
        raise RuntimeError(f"headwater dlq redrive failed: {done.stderr.strip()}")
