"""What headers say, what arrives, and what becomes a dead letter."""

import pytest

from headwater.client.consumer.record import ConsumerRecord
from headwater.delivery.delay_service.destination import (
    Destination,
    UndeliverableError,
    dead_letter,
    delivery,
    destination_of,
    size_of,
)
from headwater.wire.records import Header, TimestampType


def record(*headers: Header) -> ConsumerRecord:
    kind = TimestampType.CREATE_TIME
    return ConsumerRecord("__delay_30s", 2, 17, 1000, kind, b"key", b"value", headers, 0)


def test_a_record_arrives_as_it_was_but_for_what_sent_it_there() -> None:
    sent = record(("a", b"1"), ("headwater-topic", b"orders"), ("a", None))
    letter = delivery(sent, destination_of(sent), 31_000)
    assert letter[:4] == ("orders", None, b"key", b"value")
    assert letter.headers == [("a", b"1"), ("a", None), ("headwater-sent-at", "1000")]
    assert letter.timestamp_ms == 31_000


def test_the_last_header_counts_so_a_record_can_pass_two_levels() -> None:
    sent = record(("headwater-topic", b"orders"), ("headwater-topic", b"__delay_5s"))
    to = destination_of(sent)
    assert to == Destination("__delay_5s", None)
    assert ("headwater-topic", b"orders") in delivery(sent, to, 0).headers


def test_a_partition_can_be_named() -> None:
    sent = record(("headwater-topic", b"orders"), ("headwater-partition", b"12"))
    assert destination_of(sent) == Destination("orders", 12)
    assert [name for name, _ in delivery(sent, destination_of(sent), 0).headers] == [
        "headwater-sent-at"
    ]


@pytest.mark.parametrize(
    ("headers", "reason"),
    [
        ((), "It has no header headwater-topic."),
        ((("headwater-topic", None),), "A topic name cannot be empty."),
        ((("headwater-topic", b"\xff"),), "Its header headwater-topic is not text."),
        (
            (("headwater-topic", b"orders"), ("headwater-partition", b"-1")),
            "Its header headwater-partition is not the number of a partition.",
        ),
        (
            (("headwater-topic", b"orders"), ("headwater-partition", b"99999999999999")),
            "Its header headwater-partition is not the number of a partition.",
        ),
    ],
)
def test_what_says_nothing_usable_is_undeliverable(
    headers: tuple[Header, ...], reason: str
) -> None:
    with pytest.raises(UndeliverableError) as refused:
        destination_of(record(*headers))
    assert str(refused.value) == reason


def test_a_dead_letter_is_the_record_with_the_reason() -> None:
    letter = dead_letter(record(("a", b"1")), "Because.", 5)
    assert letter[:4] == ("__delay_dead", None, b"key", b"value")
    assert letter.headers == [
        ("a", b"1"),
        ("headwater-dead-reason", "Because."),
        ("headwater-dead-from", "__delay_30s-2@17"),
    ]


def test_the_size_counts_all_of_a_record() -> None:
    assert size_of(record(("name", b"12345"))) == size_of(record()) + 9
