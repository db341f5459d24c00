"""A topic with `delay.mode=off` beside the same in a checkout from before there were delays.

`--before DIRECTORY` names the checkout; without it nothing is measured. Processes take turns, each
with one of the two sources.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.delay import append_job
from bench.delay.run import Run
from bench.rounds import alternate
from bench.table import Goal, Row

_GOAL = Goal(0.97)
_OUR_SOURCE = Path(__file__).parents[2] / "src"


def measure(run: Run) -> None:
    if run.before is not None:
        before = run.before / "src"
        run.attempt("Appends where delays are off", lambda: _add_row(run, before))


def _add_row(run: Run, before: Path) -> None:
    rates = alternate(
        lambda: _rate(run, _OUR_SOURCE), lambda: _rate(run, before), run.sizes.append_rounds
    )
    what = "Append one record, delay.mode=off"
    run.results.rows.append(Row.compared(what, "appends/s", rates, "before", _GOAL))


def _rate(run: Run, source: Path) -> float:
    with tempfile.TemporaryDirectory(dir=run.scratch) as directory:
        done = subprocess.run(
            [sys.executable, append_job.__file__, directory, str(run.sizes.append_count), "3"],
            env={**os.environ, "PYTHONPATH": str(source)},
            capture_output=True,
            check=True,
            text=True,
        )
    rates: list[float] = json.loads(done.stdout)
    return statistics.median(rates)
