"""Following a log while others look at it, and reading what is due soon."""

from __future__ import annotations

import pytest

from headwater.delay.delay_state import DelayState
from headwater.delay.index.index import DelayIndex
from headwater.delay.message_reads import MessagePlaces, find_batch, read_places
from headwater.sim.campaigns.logs import DIRECTORY, NOW_MS, new_disk, open_log
from headwater.storage.retention import delete_records_before
from tests.support.models.hidden_log import append_delayed


def test_what_was_wanted_at_once_is_not_taken_twice() -> None:
    """A thread reads a part of the log, and meanwhile somebody asks what waits."""
    disk = new_disk()
    log = open_log(disk, DIRECTORY)
    append_delayed(log, b"one", b"two")
    append_delayed(log, b"three")
    index, _ = DelayIndex.open(disk, DIRECTORY, NOW_MS)
    state = DelayState(log, index, lambda _key, _message: None, lambda _offset: None)
    read = state.next_read(log.log_end_offset)
    assert read is not None
    part = read.run(1 << 20)
    state.follow_at_once()
    state.apply_all(part)
    assert (index.count, state.waiting.count, state.applied_offset) == (3, 3, 3)


def test_a_batch_in_which_the_log_begins_is_taken() -> None:
    disk = new_disk()
    log = open_log(disk, DIRECTORY)
    append_delayed(log, b"deleted", b"waits")
    log.raise_high_watermark(2)
    delete_records_before(log, 1)
    index, _ = DelayIndex.open(disk, DIRECTORY, NOW_MS)
    state = DelayState(log, index, lambda _key, _message: None, lambda _offset: None)
    state.follow_at_once()
    assert state.applied_offset == 2 and index.count >= 1


@pytest.mark.parametrize("wanted", [[3], [0, 1, 2, 39], list(range(40))])
def test_few_and_many_messages_of_a_batch(wanted: list[int]) -> None:
    """Many are read with one read of their batch, few with small ones."""
    log = open_log(new_disk(), DIRECTORY)
    values = [b"%d" % number * 100 for number in range(40)]
    append_delayed(log, *values)
    batch = find_batch(log, wanted[0])
    assert batch is not None
    found = read_places([MessagePlaces(batch, wanted)])
    assert [each.record().value for each in found] == [values[number] for number in wanted]
