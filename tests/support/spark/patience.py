"""Waiting for what Spark does, which may take minutes on a machine that is busy."""

import time
from collections.abc import Callable

TIMEOUT_S = 300.0
POLL_INTERVAL_S = 0.05


def patiently(look: Callable[[], object]) -> None:
    """Until `look` gives something true."""
    deadline_s = time.monotonic() + TIMEOUT_S
    while not look():
        assert time.monotonic() < deadline_s, f"not within {TIMEOUT_S} s"
        time.sleep(POLL_INTERVAL_S)
