"""Why offsets could not be committed or fetched, in sentences that tell what to do about it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from headwater.base.errors import ErrorCode, KafkaError
from headwater.client.kafka_errors import error_for

_POLL_MORE: Final = (
    "If the records of one poll take longer than max.poll.interval.ms, poll fewer at a time "
    "(max.poll.records) or allow more time"
)

#: The consumer cannot commit for these partitions any more, or not before it has polled.
_NOT_THE_OWNER: Final[Mapping[ErrorCode, str]] = {
    ErrorCode.ILLEGAL_GENERATION: (
        "The group has rebalanced meanwhile, and the partitions may be somebody else's, who reads "
        f"again what was not committed. {_POLL_MORE}"
    ),
    ErrorCode.UNKNOWN_MEMBER_ID: (
        "The consumer is no member of the group, or not any more: whoever has its partitions now "
        f"reads again what was not committed. {_POLL_MORE}"
    ),
    ErrorCode.STALE_MEMBER_EPOCH: (
        "The group has assigned partitions anew meanwhile, and this consumer has not heard of it "
        "yet: poll, and commit again what is still assigned"
    ),
}

_SENTENCES: Final[Mapping[ErrorCode, str]] = {
    **_NOT_THE_OWNER,
    ErrorCode.FENCED_INSTANCE_ID: (
        "Another consumer has joined the group with the same group.instance.id, and has the "
        "partitions now: give every consumer an instance id of its own"
    ),
    ErrorCode.REBALANCE_IN_PROGRESS: (
        "The group is rebalancing: call poll, which completes the rebalance, and commit again what "
        "is still assigned"
    ),
    ErrorCode.OFFSET_METADATA_TOO_LARGE: (
        "The metadata of an offset are longer than the broker's offset.metadata.max.bytes allows"
    ),
}


class CommitFailedError(KafkaError):
    """The consumer is not the owner of its partitions any more; the code says how it was told."""


def commit_error(code: ErrorCode, group_id: str, subject: str = "") -> KafkaError:
    """The error for an answer's code; `subject` names partitions, if it is about some of them."""
    sentence = _SENTENCES.get(code) or code.message.removesuffix(".")
    about = f" for {subject}" if subject else ""
    detail = f"Group {group_id!r} did not commit{about}. {sentence}."
    return CommitFailedError(code, detail) if code in _NOT_THE_OWNER else error_for(code, detail)


def fetch_error(code: ErrorCode, group_id: str, subject: str = "") -> KafkaError:
    about = f" for {subject}" if subject else ""
    detail = f"What group {group_id!r} has committed{about} cannot be read. {code.message}"
    return error_for(code, detail)


def not_a_member(group_id: str) -> KafkaError:
    return commit_error(ErrorCode.UNKNOWN_MEMBER_ID, group_id)
