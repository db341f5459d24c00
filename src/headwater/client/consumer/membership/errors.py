"""What a member of a group does about each error that its coordinator may answer.

Two tables, one for each protocol of groups. An error that a table does not have is tried again if
the protocol calls it retriable, and else is one that cannot pass: the user has to hear of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto
from typing import Final

from headwater.base.errors import ErrorCode, KafkaError, UnsupportedVersionError
from headwater.client.kafka_errors import error_for


class Reaction(Enum):
    #: The same again, after a pause.
    RETRY = auto()
    #: The same again, at whichever broker is the coordinator now.
    FIND_COORDINATOR = auto()
    #: Join with the member id that the answer has.
    TAKE_MEMBER_ID = auto()
    #: A rebalance is under way: join it, with what the member has.
    REJOIN = auto()
    #: What it had is lost; it is still known, and may join with the id that it has.
    LOSE_GENERATION = auto()
    #: What it had is lost, and so is its id.
    LOSE_MEMBERSHIP = auto()
    #: The user hears of it, and the member goes on.
    TELL = auto()
    #: The user hears of it, and what the member had is lost.
    FAIL = auto()


_COORDINATOR: Final = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: Reaction.RETRY,
    ErrorCode.COORDINATOR_NOT_AVAILABLE: Reaction.FIND_COORDINATOR,
    ErrorCode.NOT_COORDINATOR: Reaction.FIND_COORDINATOR,
    ErrorCode.BROKER_NOT_AVAILABLE: Reaction.FIND_COORDINATOR,
    ErrorCode.NETWORK_EXCEPTION: Reaction.FIND_COORDINATOR,
    ErrorCode.REQUEST_TIMED_OUT: Reaction.FIND_COORDINATOR,
    # Another consumer has started with the same group.instance.id; the later one wins.
    ErrorCode.FENCED_INSTANCE_ID: Reaction.FAIL,
}

CLASSIC: Final[Mapping[ErrorCode, Reaction]] = {
    **_COORDINATOR,
    ErrorCode.MEMBER_ID_REQUIRED: Reaction.TAKE_MEMBER_ID,
    ErrorCode.REBALANCE_IN_PROGRESS: Reaction.REJOIN,
    ErrorCode.ILLEGAL_GENERATION: Reaction.LOSE_GENERATION,
    ErrorCode.UNKNOWN_MEMBER_ID: Reaction.LOSE_MEMBERSHIP,
}

CONSUMER: Final[Mapping[ErrorCode, Reaction]] = {
    **_COORDINATOR,
    ErrorCode.FENCED_MEMBER_EPOCH: Reaction.LOSE_MEMBERSHIP,
    ErrorCode.UNKNOWN_MEMBER_ID: Reaction.LOSE_MEMBERSHIP,
    # The member stays, and hears the same until somebody allows it to see the topics.
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: Reaction.TELL,
}

#: Errors after which another attempt to join would take something away from another consumer.
FINAL: Final = frozenset({ErrorCode.FENCED_INSTANCE_ID, ErrorCode.UNRELEASED_INSTANCE_ID})

_HINTS: Final[Mapping[ErrorCode, str]] = {
    ErrorCode.FENCED_INSTANCE_ID: (
        "another consumer has joined with the same group.instance.id, and this one is out: "
        "every consumer of a group needs an instance id of its own"
    ),
    ErrorCode.UNRELEASED_INSTANCE_ID: (
        "another consumer with the same group.instance.id is still a member: close it first, or "
        "wait until its session is over"
    ),
    ErrorCode.INCONSISTENT_GROUP_PROTOCOL: (
        "its members and this consumer have no assignor in common: give all of them one in "
        "partition.assignment.strategy, and the same group.protocol"
    ),
    ErrorCode.GROUP_MAX_SIZE_REACHED: (
        "it has as many members as the broker's group.max.size (group.consumer.max.size) allows"
    ),
    ErrorCode.GROUP_AUTHORIZATION_FAILED: (
        "the broker does not allow this consumer to read as a member of it"
    ),
    ErrorCode.INVALID_SESSION_TIMEOUT: (
        "session.timeout.ms is not between the broker's group.min.session.timeout.ms and "
        "group.max.session.timeout.ms"
    ),
    ErrorCode.UNSUPPORTED_ASSIGNOR: (
        "the broker has no assignor of the name in group.remote.assignor"
    ),
}

_NO_CONSUMER_PROTOCOL: Final = (
    "the brokers do not have group.protocol=consumer: that needs Kafka 4.0 or later with the "
    "feature group.version=1; use group.protocol=classic"
)


def reaction_to(table: Mapping[ErrorCode, Reaction], code: ErrorCode) -> Reaction:
    return table.get(code, Reaction.RETRY if code.retriable else Reaction.FAIL)


def group_error(code: ErrorCode, group_id: str, message: str | None = None) -> KafkaError:
    """The error for the user: the hint that we have, and what the broker said."""
    hint = _HINTS.get(code)
    said = f" ({' '.join(message.split())})" if message else ""
    if hint is not None:
        return error_for(code, f"Group {group_id!r}: {hint}{said}.")
    return error_for(code, f"Group {group_id!r}: {message or code.message}")


def no_consumer_protocol(group_id: str) -> KafkaError:
    return UnsupportedVersionError(f"Group {group_id!r}: {_NO_CONSUMER_PROTOCOL}.")
