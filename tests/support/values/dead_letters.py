"""Dead letters for tests."""

from __future__ import annotations

from headwater.client.consumer.record import ConsumerRecord
from headwater.wire.records import Header, TimestampType


def letter_record(
    *headers: Header, offset: int = 17, key: bytes | None = b"key", value: bytes | None = b"value"
) -> ConsumerRecord:
    """A record of dlq.billing, partition 0, as a consumer gets it."""
    return ConsumerRecord(
        "dlq.billing", 0, offset, 5000, TimestampType.CREATE_TIME, key, value, headers, 0
    )


def our_headers(
    number: int, *, topic: str = "orders", group: str = "billing", error: str = "no money"
) -> list[Header]:
    """Those of a letter of Headwater, whose message was at that offset."""
    return [
        ("trace", b"abc"),
        ("headwater-origin", f"{topic}-0@{number}".encode()),
        ("headwater-attempts", b"6"),
        ("headwater-error", error.encode()),
        ("headwater-error-class", b"shop.Refused"),
        ("__dlq.errors.topic", topic.encode()),
        ("__dlq.errors.group", group.encode()),
        ("headwater-dead", b"enough"),
    ]
