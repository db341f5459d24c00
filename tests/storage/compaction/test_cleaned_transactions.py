"""What a pass of compaction makes of transactions, batch by batch."""

from __future__ import annotations

from headwater.storage.compaction.cleaned_transactions import CleanedTransactions
from headwater.storage.indexes.transaction_index import AbortedTransaction
from headwater.wire.records import (
    BatchHeader,
    ControlType,
    encode_end_transaction_marker,
    read_batch_header,
)
from tests.support.values.batch_headers import data_header


def _data(offset: int, producer_id: int = 1, *, transactional: bool = True) -> BatchHeader:
    return data_header(producer_id=producer_id, offset=offset, transactional=transactional)


def _end(
    transactions: CleanedTransactions, offset: int, producer_id: int = 1, *, commit: bool = False
) -> bool:
    marker = encode_end_transaction_marker(
        ControlType.COMMIT if commit else ControlType.ABORT,
        producer_id=producer_id,
        producer_epoch=0,
        coordinator_epoch=0,
        timestamp_ms=0,
        base_offset=offset,
    )
    return transactions.observe_control(read_batch_header(marker), marker)


def test_records_of_an_aborted_transaction_can_go_and_its_marker_not_yet() -> None:
    aborted = AbortedTransaction(1, 10, 12, 13)
    transactions = CleanedTransactions([aborted])
    assert not transactions.observe_data(_data(3))
    assert not _end(transactions, 4, commit=True)
    assert transactions.observe_data(_data(10))
    assert not transactions.observe_data(_data(11, producer_id=2))
    assert transactions.take_needed_entry() is None
    assert not _end(transactions, 12)
    assert transactions.take_needed_entry() == aborted
    assert transactions.take_needed_entry() is None
    assert not transactions.observe_data(_data(13))


def test_markers_without_records_can_go() -> None:
    transactions = CleanedTransactions([AbortedTransaction(1, 10, 12, 13)])
    assert _end(transactions, 12)
    assert transactions.take_needed_entry() is None
    assert _end(transactions, 14, producer_id=2, commit=True)


def test_a_commit_marker_stays_while_records_are_met() -> None:
    transactions = CleanedTransactions([])
    assert not transactions.observe_data(_data(1))
    assert not _end(transactions, 2, commit=True)
    assert _end(transactions, 3, commit=True)


def test_plain_records_are_nobodys_transaction() -> None:
    transactions = CleanedTransactions([AbortedTransaction(1, 0, 12, 13)])
    assert not transactions.observe_data(_data(1, transactional=False))
    assert not transactions.observe_data(_data(1, producer_id=-1, transactional=False))


def test_an_aborted_transaction_that_ended_before_the_walk_began_is_over() -> None:
    transactions = CleanedTransactions(
        [AbortedTransaction(1, 10, 12, 13), AbortedTransaction(1, 30, 32, 33)]
    )
    assert not transactions.observe_data(_data(20))
    assert not _end(transactions, 21, commit=True)
    assert transactions.observe_data(_data(30))


def test_an_emptied_control_batch_and_one_of_an_unknown_kind() -> None:
    transactions = CleanedTransactions([])
    header = data_header(offset=1, attributes=0x20)._replace(record_count=0)
    assert transactions.observe_control(header, b"")
    marker = bytearray(
        encode_end_transaction_marker(
            ControlType.COMMIT,
            producer_id=1,
            producer_epoch=0,
            coordinator_epoch=0,
            timestamp_ms=0,
        )
    )
    # The key of a control record is its version and its type.
    position = marker.index(b"\x00\x00\x00\x01\x0c")
    marker[position + 3] = 2
    assert not transactions.observe_control(read_batch_header(marker), bytes(marker))
