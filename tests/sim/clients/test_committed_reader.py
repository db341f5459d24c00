from headwater.sim.clients.committed_reader import AbortedFilter
from headwater.wire.messages.fetch import AbortedTransaction
from headwater.wire.records import (
    ControlType,
    Record,
    encode_batch,
    encode_end_transaction_marker,
    read_batch_header,
)


def data(offset: int, producer_id: int, *, transactional: bool = True) -> bytes:
    return encode_batch(
        [Record(offset, 0, None, b"value")],
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=0,
        transactional=transactional,
    )


def marker(offset: int, producer_id: int, kind: ControlType) -> bytes:
    return encode_end_transaction_marker(
        kind,
        producer_id=producer_id,
        producer_epoch=0,
        coordinator_epoch=0,
        timestamp_ms=0,
        base_offset=offset,
    )


def test_only_what_was_aborted_is_left_out() -> None:
    batches = [
        data(0, 7),
        data(1, 8),
        data(2, 7, transactional=False),
        marker(3, 7, ControlType.ABORT),
        data(4, 7),
        marker(5, 8, ControlType.COMMIT),
        marker(6, 7, ControlType.COMMIT),
        data(7, 8),
        marker(8, 8, ControlType.ABORT),
    ]
    aborted = [
        AbortedTransaction(producer_id=8, first_offset=7),
        AbortedTransaction(producer_id=7, first_offset=0),
    ]
    filter_ = AbortedFilter(aborted)
    left_out = [filter_.leaves_out(read_batch_header(one), memoryview(one)) for one in batches]
    kept = [offset for offset, is_left_out in enumerate(left_out) if not is_left_out]
    assert kept == [1, 2, 4]
