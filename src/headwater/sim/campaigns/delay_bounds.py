"""Bounds of delayed deliveries, made so small that a few messages reach them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

from headwater.delay import checkpointing, hand_over, message_reads, partition_delays, rolling
from headwater.delay.index import advance, append_files, index

#: So that a few messages do what takes many thousands otherwise.
_SMALL_BOUNDS: tuple[tuple[ModuleType, str, int], ...] = (
    (partition_delays, "_INLINE_BYTES_MAX", 0),
    (partition_delays, "_SLICE_BYTES", 600),
    (checkpointing, "_CHECKPOINT_INTERVAL_MS", 700),
    (hand_over, "COPIES_MAX", 3),
    (hand_over, "_LOOKED_MAX", 5),
    (message_reads, "_READ_BYTES_MAX", 200),
    (rolling, "_SLICE_BYTES", 600),
    (rolling, "_BATCH_BYTES_MAX", 200),
    (advance, "SPLIT_BYTES", 100),
    (index, "NEAR_COUNT_MAX", 6),
    (append_files, "BUFFER_BYTES_MAX", 100),
)


@contextmanager
def small_bounds() -> Iterator[None]:
    """Have them for a while, in all of this process."""
    usual = [(module, name, getattr(module, name)) for module, name, _ in _SMALL_BOUNDS]
    try:
        for module, name, value in _SMALL_BOUNDS:
            setattr(module, name, value)
        yield
    finally:
        for module, name, value in usual:
            setattr(module, name, value)
