"""The headers of dead letters, by family: Headwater's and Kafka's, Spring's, and Connect's.

Each function reads what one family says. A letter that went through several hands has the headers
of several families: `letter.py` says which of them counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, NamedTuple

from headwater.base.message_id import MessageId
from headwater.delivery.redrive.letters.header_values import (
    big_number_of,
    number_of,
    parsed_place,
    place_of,
    text_of,
)
from headwater.wire.delayed import headers as ours

SPRING_PREFIXES: Final = ("kafka_dlt-", "retry_topic-", "kafka_exception-", "kafka_original-")
CONNECT_PREFIX: Final = "__connect.errors."
KAFKA_PREFIX: Final = "__dlq.errors."

_SPRING_TOPIC: Final = "kafka_dlt-original-topic"
_SPRING_CLASS: Final = "kafka_dlt-exception-fqcn"
_CONNECT_TOPIC: Final = "__connect.errors.topic"
_CONNECT_CLASS: Final = "__connect.errors.exception.class.name"
#: The consumer group of a sink connector.
_CONNECT_GROUP: Final = "connect-"

#: Values by names.
Headers = Mapping[str, bytes | None]


class Family(StrEnum):
    """Who wrote the headers of a letter."""

    HEADWATER = "headwater"
    SPRING = "spring"
    CONNECT = "connect"
    UNKNOWN = "unknown"


class Failure(NamedTuple):
    """What the headers say of how a record failed; None is what they do not say."""

    family: Family
    origin: MessageId | None = None
    group: str | None = None
    attempts: int | None = None
    first_failure_ms: int | None = None
    last_failure_ms: int | None = None
    error_class: str | None = None
    error_message: str | None = None
    error_stack: str | None = None
    #: Of the first failure, where somebody keeps that; those above are of the last one.
    first_error_class: str | None = None
    first_error_message: str | None = None
    #: The time that the record had in the topic it was in at first.
    original_timestamp_ms: int | None = None


NOTHING_TOLD: Final = Failure(Family.UNKNOWN)


def is_ours(last: Headers) -> bool:
    """Headwater's letters, and those of share groups of Apache Kafka."""
    return ours.ORIGIN_HEADER in last or ours.DLQ_TOPIC_HEADER in last


def our_failure(last: Headers) -> Failure:
    origin = parsed_place(last.get(ours.ORIGIN_HEADER)) or place_of(
        last.get(ours.DLQ_TOPIC_HEADER),
        last.get(ours.DLQ_PARTITION_HEADER),
        last.get(ours.DLQ_OFFSET_HEADER),
    )
    attempts = number_of(last.get(ours.ATTEMPTS_HEADER))
    if attempts is None:
        attempts = number_of(last.get(ours.DLQ_DELIVERY_COUNT_HEADER))
    message = last.get(ours.ERROR_HEADER) or last.get(ours.DEAD_HEADER)
    return Failure(
        Family.HEADWATER,
        origin,
        text_of(last.get(ours.DLQ_GROUP_HEADER)) or None,
        attempts,
        number_of(last.get(ours.FIRST_FAILURE_HEADER)),
        number_of(last.get(ours.LAST_FAILURE_HEADER)),
        text_of(last.get(ours.ERROR_CLASS_HEADER)),
        text_of(message or last.get(ours.DLQ_MESSAGE_HEADER)),
        text_of(last.get(ours.ERROR_STACK_HEADER)),
        text_of(last.get(ours.FIRST_ERROR_CLASS_HEADER)),
        text_of(last.get(ours.FIRST_ERROR_HEADER)),
    )


def is_springs(last: Headers) -> bool:
    return _SPRING_TOPIC in last or _SPRING_CLASS in last


def spring_failure(first: Headers, last: Headers) -> Failure:
    """Where it was, the first headers say: each retry topic may have put its own behind them."""
    # What the listener threw is the cause of what Spring made of it.
    error_class = last.get("kafka_dlt-exception-cause-fqcn") or last.get(_SPRING_CLASS)
    # Its retry topics keep the time of the first record in as few bytes as it takes; who publishes
    # to a dead-letter topic without them has it in eight.
    written = first.get("retry_topic-original-timestamp")
    if written is None:
        written = first.get("kafka_dlt-original-timestamp")
    return Failure(
        Family.SPRING,
        place_of(
            first.get(_SPRING_TOPIC),
            first.get("kafka_dlt-original-partition"),
            first.get("kafka_dlt-original-offset"),
        ),
        text_of(first.get("kafka_dlt-original-consumer-group")) or None,
        number_of(last.get("retry_topic-attempts")),
        error_class=text_of(error_class),
        error_message=text_of(last.get("kafka_dlt-exception-message")),
        error_stack=text_of(last.get("kafka_dlt-exception-stacktrace")),
        original_timestamp_ms=big_number_of(written),
    )


def is_connects(last: Headers) -> bool:
    return _CONNECT_TOPIC in last or _CONNECT_CLASS in last


def connect_failure(last: Headers) -> Failure:
    connector = text_of(last.get("__connect.errors.connector.name"))
    return Failure(
        Family.CONNECT,
        place_of(
            last.get(_CONNECT_TOPIC),
            last.get("__connect.errors.partition"),
            last.get("__connect.errors.offset"),
        ),
        _CONNECT_GROUP + connector if connector else None,
        error_class=text_of(last.get(_CONNECT_CLASS)),
        error_message=text_of(last.get("__connect.errors.exception.message")),
        error_stack=text_of(last.get("__connect.errors.exception.stacktrace")),
    )
