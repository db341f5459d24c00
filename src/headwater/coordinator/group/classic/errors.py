"""What members of classic groups are told when something is wrong."""

from __future__ import annotations

from typing import Final

from headwater.base.errors import ErrorCode, KafkaError

#: These speak of records, of which members know nothing.
_TOO_LARGE: Final = (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE)


def unknown_member(group_id: str, member_id: str) -> KafkaError:
    return KafkaError(
        ErrorCode.UNKNOWN_MEMBER_ID, f"The group {group_id} has no member {member_id!r}."
    )


def fenced_member(group_id: str, group_instance_id: str) -> KafkaError:
    return KafkaError(
        ErrorCode.FENCED_INSTANCE_ID,
        f"The static member {group_instance_id} of the group {group_id} was started again, and "
        "has another member id by now.",
    )


def rebalance_in_progress(group_id: str) -> KafkaError:
    return KafkaError(
        ErrorCode.REBALANCE_IN_PROGRESS, f"The group {group_id} is rebalancing: join again."
    )


def illegal_generation(group_id: str, generation: int, claimed: int) -> KafkaError:
    return KafkaError(
        ErrorCode.ILLEGAL_GENERATION,
        f"The group {group_id} is in generation {generation}, not {claimed}.",
    )


def check_group_id(group_id: str) -> None:
    if not group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID, "A group's id is not empty.")


def as_member_error(error: KafkaError) -> KafkaError:
    """What a member is told of a write that failed."""
    if error.code in _TOO_LARGE:
        return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"The group cannot be stored: {error}")
    return error
