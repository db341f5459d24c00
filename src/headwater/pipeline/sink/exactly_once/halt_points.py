"""Named places in the protocol where a test may have a process halt, to kill it just there.

The environment variable HEADWATER_SPARK_HALT is a directory in which a test arms points; without it
nothing ever halts. A file `<point>.armed` holds the batch that is meant. The first process that
comes to the point in that batch takes the file away, writes its process id to `<point>.halted`, and
waits: to be killed, or to go on as one who was thought dead, when `<point>.go` appears.

| Point | Where | What has happened |
| --- | --- | --- |
| after-write | a task | its rows are written, its transaction is open |
| before-decision | the driver | all tasks are done, nothing is decided |
| after-decision | the driver | the decision is made, no transaction is committed |
| between-ends | the driver | one of the transactions is committed |
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Final

VARIABLE: Final = "HEADWATER_SPARK_HALT"
AFTER_WRITE: Final = "after-write"
BEFORE_DECISION: Final = "before-decision"
AFTER_DECISION: Final = "after-decision"
BETWEEN_ENDS: Final = "between-ends"
HALT_POINTS: Final = (AFTER_WRITE, BEFORE_DECISION, AFTER_DECISION, BETWEEN_ENDS)

_LOOK_INTERVAL_S: Final = 0.02


def is_armed(point: str) -> bool:
    directory = os.environ.get(VARIABLE)
    return directory is not None and Path(directory, f"{point}.armed").exists()


def halt_at(point: str, batch: int) -> None:
    """Wait here if a test wants it."""
    if not is_armed(point):
        return
    directory = Path(os.environ[VARIABLE])
    armed, mine = directory / f"{point}.armed", directory / f"{point}.{os.getpid()}"
    try:
        if int(armed.read_text()) != batch:
            return
        # Of several that come here at once, one gets it.
        armed.rename(mine)
    except FileNotFoundError:
        return
    mine.write_text(str(os.getpid()))
    mine.rename(directory / f"{point}.halted")
    while not (directory / f"{point}.go").exists():
        time.sleep(_LOOK_INTERVAL_S)
