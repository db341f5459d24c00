"""What a consumer is told of a record that was delivered later than it was sent."""

import pytest

from headwater import ConsumerRecord, MessageId
from headwater.wire.delayed.copies import Delivery, OrderKey, encode_deliveries
from headwater.wire.delayed.delayed_batch import delayed_message
from headwater.wire.records import Header, TimestampType, decode_batch
from headwater.wire.records.record import Record


def consumed(*headers: Header) -> ConsumerRecord:
    kind = TimestampType.CREATE_TIME
    return ConsumerRecord("orders", 2, 70, 9000, kind, b"k", b"v", headers, 0)


def test_a_copy_says_where_it_comes_from() -> None:
    message = delayed_message(Record(34, 5000, b"k", b"v", (("a", b"b"),)), 9000)
    copies = encode_deliveries([Delivery(OrderKey(9000, 34, 34), message)], append_ms=9000)
    [copy] = decode_batch(copies, 0)
    record = consumed(*copy.headers)
    assert record.delayed is not None
    assert record.delayed.id == MessageId("orders", 2, 34)
    assert record.delayed.sent_ms == 5000


@pytest.mark.parametrize(
    "headers",
    [
        (),
        (("a", b"b"),) * 3,
        (("headwater-order", b"1/1"),),
        (("a", b"b"), ("c", None), ("headwater-order", b"1/1")),
        (
            ("headwater-sent-at", b"soon"),
            ("headwater-delayed-offset", None),
            ("headwater-order", b"1/1"),
        ),
    ],
)
def test_others_do_not(headers: tuple[Header, ...]) -> None:
    assert consumed(*headers).delayed is None
