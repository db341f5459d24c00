import pytest

from headwater.base.checks import InvariantError
from headwater.base.ids import TopicPartition
from headwater.sim.disk.faulty_disk import FaultyDisk
from headwater.storage.errors import (
    InvalidProducerEpochError,
    OutOfOrderSequenceError,
)
from headwater.storage.producers.entry import (
    AppendedBatch,
    AppendOrigin,
)
from headwater.storage.producers.open_transactions import CompletedTransaction
from headwater.storage.producers.snapshot import list_snapshots
from headwater.storage.producers.state import ProducerStates
from tests.support.values.batch_headers import data, marker

DIRECTORY = "/data/orders-3"
EXPIRATION_MS = 60_000


def new_states() -> ProducerStates:
    partition = TopicPartition("orders", 3)
    return ProducerStates(partition, producer_id_expiration_ms=EXPIRATION_MS)


def append(
    states: ProducerStates, *batches: AppendedBatch, origin: AppendOrigin = AppendOrigin.CLIENT
) -> list[CompletedTransaction]:
    pending = states.prepare(batches, origin=origin)
    assert pending.duplicate is None
    states.apply(pending)
    for completed in pending.completed:
        states.complete_transaction(completed)
    return pending.completed


def replicate(states: ProducerStates, *batches: AppendedBatch) -> list[CompletedTransaction]:
    return append(states, *batches, origin=AppendOrigin.REPLICATION)


# -- appending ------------------------------------------------------------------------------------


def test_a_batch_that_is_sent_again_gets_its_first_offsets() -> None:
    states = new_states()
    for number in range(6):
        append(states, data(sequence=number * 10, offset=number * 10, count=10, timestamp=number))
    again = data(sequence=30, count=10, offset=60)
    pending = states.prepare([again], origin=AppendOrigin.CLIENT)
    duplicate = pending.duplicate
    assert duplicate is not None
    assert (duplicate.first_offset, duplicate.last_offset, duplicate.timestamp) == (30, 39, 3)
    with pytest.raises(InvariantError):
        states.apply(pending)
    # The sixth from the end is forgotten, so it can only be out of order.
    with pytest.raises(OutOfOrderSequenceError):
        states.prepare([data(sequence=0, count=10)], origin=AppendOrigin.CLIENT)


def test_preparing_changes_nothing() -> None:
    states = new_states()
    append(states, data(sequence=0, offset=0))
    before = states.entry(1)
    batches = [data(sequence=1, offset=1, transactional=True), data(producer_id=2, offset=2)]
    pending = states.prepare(batches, origin=AppendOrigin.CLIENT)
    assert states.entry(1) == before
    assert states.entry(2) is None
    assert (states.end_offset, states.first_unstable_offset) == (1, None)
    states.apply(pending)
    assert (len(states), states.end_offset, states.first_unstable_offset) == (2, 3, 1)


def test_an_append_prepared_for_another_state_is_not_applied() -> None:
    states = new_states()
    first = states.prepare([data(sequence=0, offset=0)], origin=AppendOrigin.CLIENT)
    second = states.prepare([data(sequence=0, offset=0)], origin=AppendOrigin.CLIENT)
    states.apply(first)
    with pytest.raises(InvariantError, match="prepared at offset 0 is applied at 1"):
        states.apply(second)


def test_batches_of_one_append_build_on_each_other() -> None:
    states = new_states()
    completed = replicate(
        states,
        data(sequence=0, offset=0, transactional=True),
        data(sequence=1, offset=1, transactional=True),
        data(producer_id=2, offset=2, transactional=True),
        marker(offset=3),
        data(sequence=2, offset=4, transactional=True),
    )
    assert completed == [CompletedTransaction(1, 0, 3, is_aborted=True)]
    entry = states.entry(1)
    assert entry is not None
    assert entry.transaction_first_offset == 4
    assert [batch.last_sequence for batch in entry.batches] == [0, 1, 2]
    states.on_high_watermark(5)
    assert states.first_unstable_offset == 2
    with pytest.raises(OutOfOrderSequenceError):
        states.prepare(
            [
                data(producer_id=3, sequence=0, offset=5),
                data(producer_id=3, sequence=2, offset=6),
            ],
            origin=AppendOrigin.CLIENT,
        )


def test_one_refused_batch_refuses_the_append() -> None:
    states = new_states()
    append(states, data(sequence=0, offset=0))
    with pytest.raises(OutOfOrderSequenceError):
        append(states, data(producer_id=2, offset=1), data(sequence=5, offset=2))
    assert states.entry(2) is None
    assert states.end_offset == 1


def test_batches_without_a_producer_move_only_the_end() -> None:
    states = new_states()
    append(states, data(producer_id=-1, epoch=-1, sequence=-1, offset=0, count=7))
    assert (len(states), states.end_offset, states.is_empty) == (0, 7, True)


def test_a_control_batch_that_compaction_emptied_is_passed_over() -> None:
    states = new_states()
    emptied = marker(offset=0)._replace(marker=None)
    assert replicate(states, emptied) == []
    assert (len(states), states.end_offset) == (0, 1)


# -- transactions ---------------------------------------------------------------------------------


def test_a_marker_with_the_next_epoch_ends_the_transaction() -> None:
    """Version 2 of the transaction protocol: the coordinator raises the epoch as it ends it."""
    states = new_states()
    append(states, data(epoch=4, sequence=0, offset=0, transactional=True))
    end = marker(epoch=5, offset=1, commit=True)
    completed = append(states, end, origin=AppendOrigin.COORDINATOR)
    assert completed == [CompletedTransaction(1, 0, 1, is_aborted=False)]
    with pytest.raises(InvalidProducerEpochError):
        append(states, data(epoch=4, sequence=1, offset=2, transactional=True))
    with pytest.raises(OutOfOrderSequenceError):
        append(states, data(epoch=5, sequence=1, offset=2, transactional=True))
    append(states, data(epoch=5, sequence=0, offset=2, transactional=True))
    assert states.first_undecided_offset == 2


def test_a_marker_with_the_same_epoch_lets_sequences_go_on() -> None:
    states = new_states()
    append(states, data(sequence=0, offset=0, transactional=True))
    append(states, marker(offset=1), origin=AppendOrigin.COORDINATOR)
    append(states, data(sequence=1, offset=2, transactional=True))
    again = data(sequence=0, transactional=True)
    assert states.prepare([again], origin=AppendOrigin.CLIENT).duplicate is not None


def test_a_marker_without_a_transaction_completes_nothing() -> None:
    states = new_states()
    end = marker(epoch=2, offset=0, coordinator_epoch=6)
    assert append(states, end, origin=AppendOrigin.COORDINATOR) == []
    entry = states.entry(1)
    assert entry is not None
    assert (entry.producer_epoch, entry.coordinator_epoch, entry.batches) == (2, 6, ())
    assert states.first_unstable_offset is None


def test_a_transaction_counts_as_open_until_its_abort_is_written_down() -> None:
    states = new_states()
    append(states, data(sequence=0, offset=0, transactional=True))
    pending = states.prepare([marker(offset=1)], origin=AppendOrigin.COORDINATOR)
    states.apply(pending)
    assert states.first_undecided_offset == 0
    assert states.last_stable_offset(pending.completed[0]) == 2
    states.complete_transaction(pending.completed[0])
    assert states.first_undecided_offset is None
    assert states.first_unstable_offset == 0
    states.on_high_watermark(2)
    assert states.first_unstable_offset is None


# -- forgetting -----------------------------------------------------------------------------------


def test_idle_producers_expire_but_never_inside_a_transaction() -> None:
    states = new_states()
    append(states, data(producer_id=1, offset=0, timestamp=1_000))
    append(states, data(producer_id=2, offset=1, timestamp=1_001))
    append(states, data(producer_id=3, offset=2, timestamp=0, transactional=True))
    assert states.remove_expired(1_000 + EXPIRATION_MS - 1) == 0
    assert states.remove_expired(1_000 + EXPIRATION_MS) == 1
    assert sorted(entry.producer_id for entry in states) == [2, 3]
    append(states, data(producer_id=1, sequence=44, offset=3))  # Any number will do again.


def test_the_logs_start_takes_transactions_along_but_not_producers() -> None:
    states = new_states()
    append(states, data(offset=0, transactional=True))
    append(states, marker(offset=1), origin=AppendOrigin.COORDINATOR)
    states.on_log_start(10)
    assert states.first_unstable_offset is None
    assert (states.end_offset, len(states)) == (10, 1)


# -- snapshots ------------------------------------------------------------------------------------


def test_a_snapshot_is_taken_once_per_offset() -> None:
    disk, states = FaultyDisk(directories=[DIRECTORY]), new_states()
    assert not states.take_snapshot(disk, DIRECTORY)
    append(states, data(offset=0, count=5))
    assert states.take_snapshot(disk, DIRECTORY)
    assert not states.take_snapshot(disk, DIRECTORY)
    append(states, data(sequence=5, offset=5, count=5))
    assert states.take_snapshot(disk, DIRECTORY)
    assert list_snapshots(disk, DIRECTORY) == [5, 10]


def test_a_reload_takes_the_newest_snapshot_in_range() -> None:
    disk, states = FaultyDisk(directories=[DIRECTORY]), new_states()
    for number in range(5):
        append(states, data(sequence=number, offset=number, transactional=True))
        states.take_snapshot(disk, DIRECTORY)
    states.truncate_and_reload(disk, DIRECTORY, log_start_offset=1, log_end_offset=3, now_ms=1_000)
    assert list_snapshots(disk, DIRECTORY) == [1, 2, 3]
    assert (states.end_offset, states.snapshot_offset, states.first_unstable_offset) == (3, 3, 0)
    entry = states.entry(1)
    assert entry is not None
    assert [batch.last_sequence for batch in entry.batches] == [2], "only the last one is kept"
    append(states, data(sequence=3, offset=3, transactional=True))


def test_a_reload_without_a_snapshot_starts_at_the_logs_start() -> None:
    disk, states = FaultyDisk(directories=[DIRECTORY]), new_states()
    append(states, data(offset=0, count=9))
    states.truncate_and_reload(disk, DIRECTORY, log_start_offset=4, log_end_offset=6, now_ms=1_000)
    assert (len(states), states.end_offset, states.snapshot_offset) == (0, 4, 4)


def test_a_reload_at_the_end_keeps_what_is_known() -> None:
    disk, states = FaultyDisk(directories=[DIRECTORY]), new_states()
    append(states, data(offset=0), data(sequence=1, offset=1))
    states.truncate_and_reload(disk, DIRECTORY, log_start_offset=1, log_end_offset=2, now_ms=10**12)
    entry = states.entry(1)
    assert entry is not None
    assert len(entry.batches) == 2


def test_a_reload_leaves_expired_producers_behind() -> None:
    disk, states = FaultyDisk(directories=[DIRECTORY]), new_states()
    append(states, data(producer_id=1, offset=0, timestamp=1_000))
    append(states, data(producer_id=2, offset=1, timestamp=5_000))
    states.take_snapshot(disk, DIRECTORY)
    loaded = new_states()
    loaded.truncate_and_reload(
        disk,
        DIRECTORY,
        log_start_offset=0,
        log_end_offset=2,
        now_ms=1_000 + EXPIRATION_MS,
    )
    assert [entry.producer_id for entry in loaded] == [2]


def test_a_full_truncation_forgets_everything() -> None:
    disk, states = FaultyDisk(directories=[DIRECTORY]), new_states()
    append(states, data(offset=0, transactional=True))
    states.take_snapshot(disk, DIRECTORY)
    states.truncate_fully(disk, DIRECTORY, 700)
    assert list_snapshots(disk, DIRECTORY) == []
    assert (len(states), states.end_offset, states.first_unstable_offset) == (0, 700, None)
