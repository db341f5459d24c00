"""The topics that a consumer says it wants, in the bytes that it joins a classic group with."""

from __future__ import annotations

from collections.abc import Iterable

from headwater.coordinator.stored_record import read_version
from headwater.wire.codec import MalformedMessageError, decode
from headwater.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription

#: The protocol type of groups of consumers; others, such as Connect's, speak their own language.
CONSUMER_PROTOCOL_TYPE = "consumer"

_VERSION_SIZE = 2


def topics_of_all(subscriptions: Iterable[bytes]) -> frozenset[str] | None:
    """The topics that any of them wants; None if somebody's wishes cannot be understood."""
    try:
        return frozenset[str]().union(*map(subscribed_topics, subscriptions))
    except MalformedMessageError:
        return None  # Somebody says "consumer" and means something else.


def subscribed_topics(metadata: bytes) -> frozenset[str]:
    """The topics; raises `MalformedMessageError`.

    Topics come first in all versions, so the first one is enough to read them.
    """
    read_version(metadata)
    subscription, _ = decode(ConsumerProtocolSubscription, metadata, 0, _VERSION_SIZE)
    return frozenset(subscription.topics)
