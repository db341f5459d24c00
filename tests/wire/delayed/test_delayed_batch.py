"""Delayed batches and copies: bytes and back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.wire.delayed.copies import (
    DELIVERY_PRODUCER_ID,
    LATE_MS,
    Delivery,
    OrderKey,
    encode_deliveries,
    read_order_key,
)
from headwater.wire.delayed.delayed_batch import (
    NONE,
    DelayedKind,
    check_is_delayed,
    decode_delayed_batch,
    delayed_change,
    delayed_message,
    encode_delayed_batch,
)
from headwater.wire.delayed.delayed_reader import DelayedBatchReader, ReadAt
from headwater.wire.records import (
    Compression,
    ControlType,
    InvalidRecordError,
    Record,
    decode_batch,
    encode_batch,
    encode_end_transaction_marker,
    patch_batch,
    read_batch_header,
)
from tests.support.values.record_strategies import compressions, headers, nullable_bytes

TIMES = st.integers(0, 2**62)


@st.composite
def records(draw: st.DrawFn) -> list[Record]:
    count = draw(st.integers(1, 6))
    return [
        Record(
            number,
            draw(TIMES),
            draw(nullable_bytes),
            draw(st.one_of(nullable_bytes, st.binary(min_size=600, max_size=700))),
            tuple(draw(headers)),
        )
        for number in range(count)
    ]


def reading(batch: bytes) -> ReadAt:
    return lambda at, size: batch[at : at + size]


@pytest.mark.parametrize("count", [16, 17, 32, 33, 500])
@pytest.mark.parametrize("first_size", [0, 5, 5000])
def test_one_record_of_many_is_read_without_the_others(count: int, first_size: int) -> None:
    sizes = [first_size, *(n * n % 3000 for n in range(1, count))]
    sent = [Record(n, 7, b"k", bytes(size), (("h", b"x"),)) for n, size in enumerate(sizes)]
    batch = encode_delayed_batch([delayed_message(each, 5) for each in sent], append_ms=9)
    patched = bytearray(batch)
    patch_batch(patched, 0, base_offset=1000, leader_epoch=3)
    total = 0

    def read_at(at: int, size: int) -> bytes:
        nonlocal total
        total += size
        return bytes(patched[at : at + size])

    kept = DelayedBatchReader(read_at)
    for number, each in enumerate(decode_delayed_batch(bytes(patched))):
        assert kept.read(1000 + number) == each
        total = 0
        assert DelayedBatchReader(read_at).read(1000 + number) == each
        assert each.record()._replace(offset=number) == sent[number]
        assert total <= 1024 + 40 + 16 * 3200 + first_size


@given(records(), TIMES, compressions, st.booleans(), st.binary(max_size=20))
def test_what_was_sent_comes_back(
    sent: list[Record], due_ms: int, codec: Compression, transactional: bool, sender_id: bytes
) -> None:
    delayed = [delayed_message(each, due_ms, sender_id=sender_id, codec=codec) for each in sent]
    batch = encode_delayed_batch(
        delayed,
        append_ms=7,
        producer_id=3,
        producer_epoch=1,
        base_sequence=5,
        transactional=transactional,
    )
    header = read_batch_header(batch)
    assert header.is_delayed and header.is_control
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (3, 1, 5)
    assert (header.is_transactional, header.max_timestamp) == (transactional, 7)
    assert (header.record_count, header.last_offset_delta) == (len(sent), len(sent) - 1)
    found = decode_delayed_batch(batch)
    assert [each.record() for each in found] == sent
    assert {(each.due_ms, each.sender_id, each.kind) for each in found} == {
        (due_ms, sender_id, DelayedKind.MESSAGE)
    }
    for each in found:
        assert DelayedBatchReader(reading(batch)).read(each.offset) == each
    with pytest.raises(InvalidRecordError):
        DelayedBatchReader(reading(batch)).read(len(sent))


def test_other_batches_are_not_taken_for_delayed_ones() -> None:
    record = [Record(0, 1, b"k", b"v")]
    marker = encode_end_transaction_marker(
        ControlType.COMMIT, producer_id=1, producer_epoch=0, coordinator_epoch=0, timestamp_ms=1
    )
    for batch in (
        encode_batch(record),
        encode_batch(record, producer_id=1, producer_epoch=0, base_sequence=0, transactional=True),
        marker,
    ):
        assert not read_batch_header(batch).is_delayed
    foreign = encode_batch([Record(0, 0, b"\0\0\0\2", b"")], control=True)
    assert read_batch_header(foreign).is_delayed  # So its records have to be looked at.
    with pytest.raises(InvalidRecordError, match="no type that is known"):
        check_is_delayed(foreign, 0, read_batch_header(foreign))


def test_a_change_names_what_it_is_about() -> None:
    cancel = delayed_change(0, DelayedKind.CANCEL, original=17)
    later = delayed_change(1, DelayedKind.RESCHEDULE, sender_id=b"x", due_ms=9)
    batch = encode_delayed_batch([cancel, later], append_ms=1)
    assert decode_delayed_batch(batch) == [cancel, later]
    assert cancel.id_offset == 17


@given(records(), compressions)
def test_a_copy_says_what_it_is_a_copy_of(sent: list[Record], codec: Compression) -> None:
    keys = [OrderKey(108 + each.offset, 50, each.offset) for each in sent]
    batch = encode_deliveries(
        [Delivery(key, delayed_message(each, 5)) for key, each in zip(keys, sent, strict=True)],
        append_ms=110 + LATE_MS,
        compression=codec,
    )
    header = read_batch_header(batch)
    assert header.producer_id == DELIVERY_PRODUCER_ID and not header.is_control
    assert header.base_timestamp == keys[-1].due_ms
    copies = decode_batch(batch)
    assert [read_order_key(each) for each in copies] == keys
    times = [110 + LATE_MS if key.due_ms < 110 else key.due_ms for key in keys]
    assert [each.timestamp for each in copies] == times
    assert header.max_timestamp == max(times)
    for copy, each in zip(copies, sent, strict=True):
        assert (copy.key, copy.value) == (each.key, each.value)
        assert copy.headers[:-3] == each.headers
        assert dict(copy.headers[-3:-1]) == {
            "headwater-sent-at": str(each.timestamp).encode(),
            "headwater-delayed-offset": str(each.offset).encode(),
        }


def test_a_record_that_is_no_copy_is_refused() -> None:
    with pytest.raises(InvalidRecordError, match="does not say what it is a copy of"):
        read_order_key(Record(1, 2, None, None))
    assert delayed_message(Record(3, 2, None, b"v"), 1).original == NONE
