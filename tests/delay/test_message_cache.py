"""What is kept of messages that were read ahead, and for how long."""

from __future__ import annotations

from headwater.delay.message_cache import MessageCache
from headwater.wire.delayed.delayed_batch import DelayedRecord, delayed_message
from headwater.wire.records import Record


def message(offset: int) -> DelayedRecord:
    return delayed_message(Record(offset, 0, b"key", b"x" * 100), 0)


def test_it_is_full_by_bytes_and_takes_what_must_be_had() -> None:
    cache = MessageCache(bytes_max=150)
    for offset in range(3):
        cache.put(message(offset))
        cache.put(message(offset))
    assert len(cache) == 3 and cache.is_full
    cache.drop(0)
    cache.drop(1)
    cache.drop(7)
    assert len(cache) == 1 and not cache.is_full
    assert cache.get(0) is None and cache.get(2) == message(2)


def test_what_is_cancelled_while_a_thread_reads_it_is_not_kept() -> None:
    cache = MessageCache()
    cache.begin_reading()
    cache.drop(1)
    cache.end_reading([message(0), message(1)])
    assert 0 in cache and 1 not in cache
    # Of the next reading nothing was dropped.
    cache.begin_reading()
    cache.end_reading([message(1)])
    assert 1 in cache


def test_a_reading_for_a_log_that_was_cut_leaves_nothing() -> None:
    cache = MessageCache()
    cache.begin_reading()
    cache.drop(1)
    cache.clear()
    cache.end_reading([])
    cache.put(message(1))
    assert 1 in cache
