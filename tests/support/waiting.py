"""Waiting for what a cluster does a moment after it said so."""

import time
from collections.abc import Callable
from typing import TypeVar

Value = TypeVar("Value")

TIMEOUT_S = 20.0
POLL_INTERVAL_S = 0.01


def eventually(look: Callable[[], Value]) -> Value:
    """What `look` gives, as soon as it is true."""
    deadline = time.monotonic() + TIMEOUT_S
    while not (found := look()):
        assert time.monotonic() < deadline, f"not within {TIMEOUT_S} s; last: {found!r}"
        time.sleep(POLL_INTERVAL_S)
    return found
