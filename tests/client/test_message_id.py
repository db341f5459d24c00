"""Names of delayed messages."""

import pytest

from headwater import MessageId, RecordMetadata, SenderId, TopicPartition
from headwater.client.message_id import sender_id_bytes


@pytest.mark.parametrize("text", ["orders-0@1234", "a-b-1-17@0", "x-0@9223372036854775807"])
def test_an_id_is_read_as_it_is_written(text: str) -> None:
    assert str(MessageId.parse(text)) == text


def test_the_parts_of_an_id() -> None:
    read = MessageId.parse("shop-orders-2@7")
    assert read == ("shop-orders", 2, 7)
    assert read.topic_partition == TopicPartition("shop-orders", 2)
    assert RecordMetadata("shop-orders", 2, 7, 0).message_id == read


@pytest.mark.parametrize(
    "text",
    ["", "orders", "orders-0", "orders@1", "orders-0@", "orders-0@-1", "orders-0@1x", "-0@1",
     "orders-0@9223372036854775808", "orders-0@٣", "or ders-0@1", "orders-01@1"],
)  # fmt: skip
def test_what_is_no_id(text: str) -> None:
    with pytest.raises(ValueError, match=r"not the id of a message.*orders-0@1234"):
        MessageId.parse(text)


def test_ids_of_senders() -> None:
    assert str(SenderId("orders", b"a\xff")) == "sender:a\ufffd in orders"
    assert str(SenderId("orders", b"a", 3)) == "sender:a in orders-3"
    assert sender_id_bytes("ä") == b"\xc3\xa4"
    with pytest.raises(ValueError, match="empty"):
        sender_id_bytes("")
    with pytest.raises(ValueError, match="257 bytes is too long"):
        sender_id_bytes(bytes(257))
    with pytest.raises(TypeError, match="must be text or bytes"):
        sender_id_bytes(7)  # type: ignore[arg-type]
