"""Lets Python look for garbage after many records were made, and not all the time meanwhile.

Python's collector runs each time that some hundred objects were made, and walks through those that
are young, again and again. Ten thousand records are ten thousand objects, none of which is garbage
before the user has seen it: the collector took as long as all of the decoding.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def paused_collection() -> Iterator[None]:
    """No collection inside; the next one comes right after it. Where the user has none, none."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
