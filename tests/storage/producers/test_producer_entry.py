import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.base.ids import TopicPartition
from headwater.storage.errors import (
    InvalidProducerEpochError,
    InvalidTxnStateError,
    OutOfOrderSequenceError,
    TransactionCoordinatorFencedError,
)
from headwater.storage.producers.entry import (
    SEQUENCE_MAX,
    AppendedBatch,
    AppendOrigin,
    BatchMetadata,
    ProducerEntry,
    check_data,
    check_marker,
)
from headwater.wire.records import (
    ControlType,
    EndTransactionMarker,
    InvalidRecordError,
    Record,
    encode_batch,
    encode_end_transaction_marker,
    read_batch_header,
)
from tests.support.values.batch_headers import data_header, marker

PARTITION = TopicPartition("orders", 3)
CLIENT, COORDINATOR, REPLICATION = (
    AppendOrigin.CLIENT,
    AppendOrigin.COORDINATOR,
    AppendOrigin.REPLICATION,
)


def entry_after(*sequences: int, epoch: int = 0) -> ProducerEntry:
    entry = ProducerEntry(1)
    for offset, sequence in enumerate(sequences):
        entry = entry.with_data(data_header(epoch=epoch, sequence=sequence, offset=offset))
    return entry


# -- what is remembered ---------------------------------------------------------------------------


def test_an_entry_remembers_the_last_five_batches_of_its_epoch() -> None:
    entry = entry_after(0, 1, 2, 3, 4, 5, 6)
    assert [batch.first_sequence for batch in entry.batches] == [2, 3, 4, 5, 6]
    assert (entry.last_sequence, entry.last_offset, entry.last_offset_delta) == (6, 6, 0)
    fresh = entry.with_data(data_header(epoch=1, sequence=0, offset=7))
    assert [batch.first_sequence for batch in fresh.batches] == [0]
    assert fresh.producer_epoch == 1
    assert len(entry.batches) == 5, "an entry is a value and does not change"


def test_an_empty_entry_says_so_in_numbers() -> None:
    entry = ProducerEntry(1)
    assert (entry.last_sequence, entry.last_offset, entry.last_offset_delta) == (-1, -1, 0)
    assert (entry.producer_epoch, entry.coordinator_epoch, entry.last_timestamp) == (-1, -1, -1)


def test_a_duplicate_has_exactly_the_same_sequences_and_epoch() -> None:
    header = data_header(sequence=10, offset=100, count=5, timestamp=7)
    entry = ProducerEntry(1).with_data(header)
    assert entry.find_duplicate(header) == BatchMetadata(14, 104, 4, 7)
    assert entry.find_duplicate(header._replace(base_offset=500)) is not None
    assert entry.find_duplicate(header._replace(producer_epoch=1)) is None
    assert entry.find_duplicate(header._replace(last_offset_delta=3)) is None
    assert entry.find_duplicate(header._replace(base_sequence=11)) is None
    assert entry.find_duplicate(header._replace(base_sequence=11, last_offset_delta=3)) is None


@given(st.integers(0, SEQUENCE_MAX), st.integers(1, 1000))
def test_sequences_wrap_around(sequence: int, count: int) -> None:
    header = data_header(sequence=sequence, count=count)
    entry = ProducerEntry(1).with_data(header)
    assert entry.batches[0].first_sequence == sequence
    assert 0 <= entry.last_sequence <= SEQUENCE_MAX
    expected = (sequence + count) % (SEQUENCE_MAX + 1)
    assert entry.continues_with(expected)
    assert not entry.continues_with(expected + 1)
    assert entry.find_duplicate(header) is not None


def test_a_transaction_begins_with_its_first_batch_and_ends_with_its_marker() -> None:
    entry = ProducerEntry(1)
    for offset in (40, 41):
        header = data_header(sequence=offset - 40, offset=offset, transactional=True)
        entry = entry.with_data(header)
    assert entry.transaction_first_offset == 40
    ended = entry.with_marker(marker(offset=42, timestamp=77).header, coordinator_epoch=9)
    assert ended.transaction_first_offset is None
    assert (ended.coordinator_epoch, ended.last_timestamp) == (9, 77)
    assert ended.batches == entry.batches, "a marker is no data: sequences go on"
    bumped = entry.with_marker(marker(epoch=1, offset=42).header, coordinator_epoch=9)
    assert bumped.producer_epoch == 1
    assert bumped.continues_with(0), "with a new epoch they start over"


# -- what may follow ------------------------------------------------------------------------------


def test_a_client_must_continue_where_it_stopped() -> None:
    entry = entry_after(0, 1, 2)
    check_data(entry, data_header(sequence=3), CLIENT, PARTITION)
    for sequence in (0, 2, 4, SEQUENCE_MAX):
        with pytest.raises(OutOfOrderSequenceError, match="orders-3"):
            check_data(entry, data_header(sequence=sequence), CLIENT, PARTITION)
    for origin in (COORDINATOR, REPLICATION):
        check_data(entry, data_header(sequence=-1), origin, PARTITION)


def test_the_number_after_the_largest_is_zero() -> None:
    entry = entry_after(SEQUENCE_MAX)
    check_data(entry, data_header(sequence=0), CLIENT, PARTITION)
    with pytest.raises(OutOfOrderSequenceError):
        check_data(entry, data_header(sequence=1), CLIENT, PARTITION)


def test_a_new_epoch_starts_at_zero() -> None:
    entry = entry_after(0, 1)
    check_data(entry, data_header(epoch=1, sequence=0), CLIENT, PARTITION)
    with pytest.raises(OutOfOrderSequenceError, match="began epoch 1"):
        check_data(entry, data_header(epoch=1, sequence=2), CLIENT, PARTITION)


def test_an_unknown_producer_may_start_anywhere() -> None:
    check_data(ProducerEntry(1), data_header(epoch=4, sequence=99), CLIENT, PARTITION)


@pytest.mark.parametrize("origin", [CLIENT, COORDINATOR])
def test_an_older_epoch_is_fenced(origin: AppendOrigin) -> None:
    entry = entry_after(0, epoch=5)
    with pytest.raises(InvalidProducerEpochError, match="epoch 4, older than 5"):
        check_data(entry, data_header(epoch=4, sequence=1), origin, PARTITION)
    old = marker(epoch=4)
    assert old.marker is not None
    with pytest.raises(InvalidProducerEpochError):
        check_marker(entry, old.header, old.marker, origin, PARTITION)


def test_what_a_leader_has_written_is_taken_as_it_is(caplog: pytest.LogCaptureFixture) -> None:
    entry = entry_after(0, epoch=5)._replace(coordinator_epoch=9)
    check_data(entry, data_header(epoch=4, sequence=77), REPLICATION, PARTITION)
    old = EndTransactionMarker(ControlType.ABORT, 8)
    with caplog.at_level(logging.INFO):
        check_marker(entry, marker(epoch=5).header, old, REPLICATION, PARTITION)
    assert "epoch 4, older than 5" in caplog.text
    assert "coordinator epoch 8, older than 9" in caplog.text


def test_an_open_transaction_admits_nothing_else() -> None:
    entry = ProducerEntry(1).with_data(data_header(sequence=0, transactional=True))
    check_data(entry, data_header(sequence=1, transactional=True), CLIENT, PARTITION)
    for origin in AppendOrigin:
        with pytest.raises(InvalidTxnStateError, match="outside a transaction"):
            check_data(entry, data_header(sequence=1), origin, PARTITION)


def test_an_older_coordinator_is_fenced() -> None:
    entry = entry_after(0)._replace(coordinator_epoch=9)
    header = marker().header
    check_marker(entry, header, EndTransactionMarker(ControlType.COMMIT, 9), COORDINATOR, PARTITION)
    with pytest.raises(TransactionCoordinatorFencedError, match="coordinator epoch 8"):
        check_marker(
            entry, header, EndTransactionMarker(ControlType.COMMIT, 8), COORDINATOR, PARTITION
        )


# -- reading batches ------------------------------------------------------------------------------


def test_a_marker_is_looked_into_and_data_is_not() -> None:
    data = encode_batch([Record(5, 0, b"k", b"v")], producer_id=1, producer_epoch=0)
    damaged = data[:61] + b"\xff" * (len(data) - 61)
    header = read_batch_header(damaged)
    assert AppendedBatch.read(header, damaged) == AppendedBatch(header, None)

    batch = encode_end_transaction_marker(
        ControlType.COMMIT,
        producer_id=1,
        producer_epoch=0,
        coordinator_epoch=3,
        timestamp_ms=10,
        base_offset=6,
    )
    buffer = data + batch
    header = read_batch_header(buffer, len(data))
    expected = EndTransactionMarker(ControlType.COMMIT, 3)
    assert AppendedBatch.read(header, buffer, len(data)) == AppendedBatch(header, expected)


def test_a_control_batch_that_compaction_emptied_has_no_marker() -> None:
    batch = encode_batch(
        [],
        producer_id=1,
        producer_epoch=0,
        transactional=True,
        control=True,
        base_offset=8,
        last_offset_delta=0,
    )
    header = read_batch_header(batch)
    assert AppendedBatch.read(header, batch).marker is None


def test_a_control_batch_of_a_producer_that_ends_nothing_is_refused() -> None:
    batch = encode_batch(
        [Record(0, 0, b"\0\0\0\2", b"")],
        producer_id=1,
        producer_epoch=0,
        transactional=True,
        control=True,
    )
    with pytest.raises(InvalidRecordError):
        AppendedBatch.read(read_batch_header(batch), batch)
