"""What Spark has counted in passing while it did something else, for frames that are no stream."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as f

#: Spark has the counts when an action ends, or never, if the action read nothing.
_WAIT_S: Final = 2.0
_PAUSE_S: Final = 0.01
_ROWS: Final = "rows"


def observed(observation: Observation) -> dict[str, int]:
    """The counts of the first action that is over; empty if there was none."""
    # What Spark offers waits for ever where nothing was read.
    java: Any = observation._jo
    if java is None:
        return {}
    deadline_s = time.monotonic() + _WAIT_S
    while not java.future().isCompleted():
        if time.monotonic() > deadline_s:
            return {}
        time.sleep(_PAUSE_S)
    return {name: int(count) for name, count in observation.get.items()}


def count_written(frame: DataFrame, write: Callable[[DataFrame], None]) -> int:
    """How many rows of the frame a write has taken; none if it found that it had them already."""
    observation = Observation()
    write(frame.observe(observation, f.count(f.lit(1)).alias(_ROWS)))
    return observed(observation).get(_ROWS, 0)
