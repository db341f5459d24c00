"""Says what is wrong with the arguments of a `send` that failed; one that succeeds never asks."""

from __future__ import annotations

from headwater.client.errors import UnknownTopicError
from headwater.client.given_items import given_number, given_topic
from headwater.client.kafka_errors.record_errors import InvalidTimestampError


def check_place(topic: object, partition: object) -> None:
    """Raise if these cannot be a topic and one of its partitions, whatever the cluster has."""
    name = given_topic(topic)
    if partition is not None and given_number(partition, "The partition") < 0:
        raise UnknownTopicError(f"Topic {name!r} has no partition {partition}: give 0 or more.")


def wrong_timestamp(timestamp_ms: object) -> InvalidTimestampError:
    return InvalidTimestampError(
        f"timestamp_ms cannot be {timestamp_ms!r}: it must be a whole number of milliseconds "
        "since 1970, such as int(time.time() * 1000)."
    )
