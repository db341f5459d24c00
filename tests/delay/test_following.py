"""Following a log while others look at it, and reading what is due soon."""

from __future__ import annotations

import pytest

from headwater.base.clocks import ManualClock
from headwater.delay import delay_state
from headwater.delay.delay_state import DelayState
from headwater.delay.index.index import DelayIndex
from headwater.delay.message_reads import MessagePlaces, find_batch, read_places
from headwater.delay.waiting import MessageName
from headwater.sim.campaigns.logs import (
    DIRECTORY,
    NOW_MS,
    append,
    end_transaction,
    new_disk,
    open_log,
)
from headwater.sim.disk.faulty_disk import FaultyDisk
from headwater.storage.compaction.cleanable import dirty_section
from headwater.storage.compaction.compaction import compact
from headwater.storage.compaction.compaction_job import CleanedGroup
from headwater.storage.compaction.compaction_plan import CleanerConfig, plan_compaction
from headwater.storage.compaction.segment_swap import swap_now
from headwater.storage.log_config import LogConfig
from headwater.storage.partition_log import PartitionLog
from headwater.storage.producers.entry import AppendOrigin
from headwater.storage.retention import delete_records_before
from headwater.wire.delayed.copies import Delivery, OrderKey, encode_deliveries
from headwater.wire.delayed.delayed_batch import (
    DelayedKind,
    delayed_change,
    delayed_message,
    encode_delayed_batch,
)
from headwater.wire.records import Record
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
    state = read_anew(log)
    assert state.applied_offset == 2 and state.index.count >= 1


def test_what_is_read_anew_is_not_counted_again() -> None:
    """Counts are of what happened since the start, and not of all that the log remembers."""
    log = open_log(new_disk(), DIRECTORY)
    append_delayed(log, b"cancelled")
    cancel = delayed_change(0, DelayedKind.CANCEL, original=0)
    for _ in range(2):
        own(log, encode_delayed_batch([cancel], append_ms=NOW_MS))
    state = read_anew(log)
    assert (state.cancelled_count, state.unknown_count, state.waiting.count) == (0, 0, 0)
    state.waiting.is_complete = True
    append_delayed(log, b"cancelled now")
    for _ in range(2):
        own(log, encode_delayed_batch([cancel._replace(original=3)], append_ms=NOW_MS))
    state.follow_at_once()
    assert (state.cancelled_count, state.unknown_count, state.waiting.count) == (1, 1, 0)


def test_all_of_an_id_are_found_though_many_that_had_it_are_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(delay_state, "FOUND_MAX", 3)
    log = open_log(new_disk(), DIRECTORY)
    named = [
        delayed_message(Record(number, NOW_MS, b"k", b"v"), NOW_MS + 10**7, sender_id=b"mine")
        for number in range(7)
    ]
    own(log, encode_delayed_batch(named, append_ms=NOW_MS))
    state = read_anew(log)
    cancel = delayed_change(0, DelayedKind.CANCEL, sender_id=b"mine")
    for left_count in (4, 1, 0, 0):  # The newest first, so many at a time.
        own(log, encode_delayed_batch([cancel], append_ms=NOW_MS))
        state.follow_at_once()
        assert [key.offset for key in state.index.between(0, 1 << 60, 10)] == list(
            range(left_count)
        )
    # One that comes later is found, although nothing was found before.
    assert state.find(MessageName(sender_id=b"mine")) == []
    own(log, encode_delayed_batch(named[:1], append_ms=NOW_MS))
    state.follow_at_once()
    assert [offset for offset, _ in state.find(MessageName(sender_id=b"mine"))] == [11]


def test_ids_are_found_wherever_their_messages_are() -> None:
    """Put off, rolled, in a transaction: the key that an id was noted with may be an old one."""
    log = open_log(new_disk(), DIRECTORY)
    due_ms = NOW_MS + 10**7
    first = delayed_message(Record(0, NOW_MS, b"k", b"v"), due_ms, sender_id=b"mine")
    later = delayed_change(0, DelayedKind.RESCHEDULE, original=0, due_ms=due_ms + 5)
    rolled = first._replace(original=0, due_ms=due_ms + 5)
    name = MessageName(sender_id=b"mine")
    expected = [
        (first, OrderKey(due_ms, 0, 0)),
        (later, OrderKey(due_ms + 5, 1, 0)),
        (rolled, OrderKey(due_ms + 5, 2, 2)),
    ]
    for step, (record, key) in enumerate(expected):
        own(log, encode_delayed_batch([record], append_ms=NOW_MS))
        assert read_anew(log).find(name) == [(0, key)], step
    cancel = delayed_change(0, DelayedKind.CANCEL, sender_id=b"mine")
    own(log, encode_delayed_batch([cancel], append_ms=NOW_MS))
    assert read_anew(log).find(name) == []
    producer = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0}
    own(log, encode_delayed_batch([first], append_ms=NOW_MS, transactional=True, **producer))
    assert read_anew(log).find(name) == []
    end_transaction(log, 7, commit=True)
    assert read_anew(log).find(name) == [(4, OrderKey(due_ms, 5, 4))]


def test_ids_of_what_was_delivered_are_let_go() -> None:
    """Or their files would grow with all that was ever sent."""
    log = open_log(new_disk(), DIRECTORY)
    for _ in range(300):
        message = delayed_message(Record(0, NOW_MS, b"k", b"v"), NOW_MS + 5, sender_id=b"mine")
        own(log, encode_delayed_batch([message], append_ms=NOW_MS))
    log.roll(NOW_MS)
    state = read_anew(log)
    assert state.index.ids.size_bytes == 300 * 32
    for number in range(299):
        state.forget(OrderKey(NOW_MS + 5, number, number))
    for _ in range(16):
        state.forget_old_ids()
    assert len(list(state.index.ids.candidates(b"mine"))) == 300  # One of the segment waits.
    state.forget(OrderKey(NOW_MS + 5, 299, 299))
    for _ in range(16):
        state.forget_old_ids()
    assert state.index.ids.size_bytes == 0


@pytest.mark.parametrize("value", [b"value", None])
def test_a_compacted_log_still_says_what_was_delivered(value: bytes | None) -> None:
    """A topic is compacted from some day on; then a new replica has nothing but what that left."""
    disk = new_disk()
    log = open_log(disk, DIRECTORY, LogConfig(cleanup_policy=frozenset({"compact"})))
    message = delayed_message(Record(0, NOW_MS, b"key", value), NOW_MS + 5)
    own(log, encode_delayed_batch([message], append_ms=NOW_MS))
    own(log, encode_delayed_batch([message._replace(due_ms=NOW_MS + 9)], append_ms=NOW_MS))
    own(log, encode_deliveries([Delivery(OrderKey(NOW_MS + 5, 0, 0), message)], append_ms=NOW_MS))
    append(log, b"superseded")
    append(log, b"latest")
    log.roll(NOW_MS)
    log.flush()
    log.raise_high_watermark(log.log_end_offset)
    for number in range(2):  # What is left of the copies goes in a second pass, if it may.
        now_ms = NOW_MS + number * 2 * log.config.delete_retention_ms
        ticket, job = plan_compaction(dirty_section(log, 0, now_ms), CleanerConfig(), now_ms)
        for item in compact(job, log.files, ManualClock()):
            if isinstance(item, CleanedGroup):
                assert swap_now(ticket, item, now_ms)
    state = read_anew(log)
    assert [key.offset for key in state.index.due(NOW_MS + 100, 10)] == [1]
    assert state.watermark == OrderKey(NOW_MS + 5, 0, 0)
    log.close()
    for name in disk.list_dir(DIRECTORY):
        if name.endswith(".snapshot"):
            disk.remove(f"{DIRECTORY}/{name}")
    reopened = open_log(disk, DIRECTORY)
    assert reopened.producer_states.delivered_until_ms == NOW_MS + 5


def own(log: PartitionLog, batch: bytes) -> None:
    """Append what a broker writes by itself."""
    origin = AppendOrigin.COORDINATOR
    log.append_as_leader(bytearray(batch), leader_epoch=0, now_ms=NOW_MS, origin=origin)


def read_anew(log: PartitionLog) -> DelayState:
    """What a broker finds out that has the log, and no index of it."""
    index, _ = DelayIndex.open(FaultyDisk(0, directories=["/index"]), "/index", NOW_MS)
    state = DelayState(log, index, lambda _key, _message: None, lambda _offset: None)
    state.follow_at_once()
    index.advance(NOW_MS)
    return state


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
