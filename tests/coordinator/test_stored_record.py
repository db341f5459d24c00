"""Keys and values of internal topics: a version, then a message."""

import pytest

from headwater.coordinator.stored_record import decode_versioned, encode_versioned, read_version
from headwater.wire.codec import MalformedMessageError
from headwater.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription


def test_a_message_comes_back_from_behind_its_version() -> None:
    message = ConsumerProtocolSubscription(topics=["orders"], user_data=b"x", rack_id="r1")
    encoded = encode_versioned(message, 3)
    assert read_version(encoded) == 3
    assert decode_versioned(ConsumerProtocolSubscription, encoded) == message


@pytest.mark.parametrize("bytes_", [b"", b"\0", b"\0\x63", b"\xff\xff", b"\0\0\0"])
def test_what_is_no_such_message_is_refused(bytes_: bytes) -> None:
    with pytest.raises(MalformedMessageError):
        decode_versioned(ConsumerProtocolSubscription, bytes_)
