"""How long `headwater trace` takes to find one message among very many, by its id."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from typing import Final

from bench.audit.run import Run
from bench.audit.sizes import PARTITION_COUNT, RECORD_SIZE_BYTES
from bench.broker.filled_topic import filled_topic
from bench.rounds import Spread
from bench.table import Goal, Row

_GOAL: Final = Goal(1.0, is_upper=True)
_TRIES: Final = 5
#: Seeds the choice of messages: all runs look for the same.
_SEED: Final = 1
_TIMEOUT_S: Final = 120.0


def measure(run: Run) -> None:
    run.attempt("One message among many", lambda: _add_row(run))


def _add_row(run: Run) -> None:
    chance = random.Random(_SEED)
    total_bytes = run.sizes.searched_count * RECORD_SIZE_BYTES
    with (
        run.broker() as broker,
        filled_topic(
            broker, run.name("topic"), PARTITION_COUNT, RECORD_SIZE_BYTES, total_bytes
        ) as (topic, record_count),
    ):
        seconds = []
        for _ in range(_TRIES):
            # Partitions are filled batch by batch in turns: each has half of its share at least.
            number = chance.randrange(record_count // PARTITION_COUNT // 2)
            message = f"{topic}-{chance.randrange(PARTITION_COUNT)}@{number}"
            begun_s = time.perf_counter()
            subprocess.run(
                [sys.executable, "-m", "headwater", "trace", message, "-b", broker.bootstrap],
                check=True,
                capture_output=True,
                timeout=_TIMEOUT_S,
            )
            seconds.append(time.perf_counter() - begun_s)
    what = f"One message among {record_count:,}, `headwater trace ID` as a whole"
    run.results.rows.append(Row(what, "s", Spread.of(seconds), goal=_GOAL))
