"""Errors of groups: their coordinator, their members, and the offsets they commit."""

from headwater.base.errors import ErrorCode, KafkaError, RetriableError


class OffsetMetadataTooLargeError(KafkaError):
    code = ErrorCode.OFFSET_METADATA_TOO_LARGE
    advice = "Commit less metadata; the broker's offset.metadata.max.bytes bounds it."


class CoordinatorLoadInProgressError(RetriableError):
    code = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    advice = "It will be ready in a moment. The client tries again by itself."


class CoordinatorNotAvailableError(RetriableError):
    code = ErrorCode.COORDINATOR_NOT_AVAILABLE
    advice = "Another broker will take over. The client looks for it by itself."


class NotCoordinatorError(RetriableError):
    code = ErrorCode.NOT_COORDINATOR
    advice = "The coordinator has moved. The client looks for it by itself."


class IllegalGenerationError(KafkaError):
    code = ErrorCode.ILLEGAL_GENERATION
    advice = (
        "The group has rebalanced since. Poll more often than max.poll.interval.ms; the "
        "partitions' new owners read again what was not committed."
    )


class InconsistentGroupProtocolError(KafkaError):
    code = ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    advice = (
        "All members of a group need an assignor in common: compare their "
        "partition.assignment.strategy and group.protocol."
    )


class InvalidGroupIdError(KafkaError):
    code = ErrorCode.INVALID_GROUP_ID
    advice = "Set group.id."


class UnknownMemberIdError(KafkaError):
    code = ErrorCode.UNKNOWN_MEMBER_ID
    advice = (
        "The member was removed. Poll more often than max.poll.interval.ms; it joins again with "
        "the next poll."
    )


class InvalidSessionTimeoutError(KafkaError):
    code = ErrorCode.INVALID_SESSION_TIMEOUT
    advice = (
        "The broker's group.min.session.timeout.ms and group.max.session.timeout.ms bound "
        "session.timeout.ms."
    )


class RebalanceInProgressError(KafkaError):
    code = ErrorCode.REBALANCE_IN_PROGRESS
    advice = "Poll, so that the member takes part in it, then commit again."


class InvalidCommitOffsetSizeError(KafkaError):
    code = ErrorCode.INVALID_COMMIT_OFFSET_SIZE
    advice = "Commit less metadata, or fewer partitions at once."


class NonEmptyGroupError(KafkaError):
    code = ErrorCode.NON_EMPTY_GROUP
    advice = "Stop its members first, or remove them."


class GroupIdNotFoundError(KafkaError):
    code = ErrorCode.GROUP_ID_NOT_FOUND
    advice = "A group comes into being with its first member or its first commit."


class MemberIdRequiredError(KafkaError):
    code = ErrorCode.MEMBER_ID_REQUIRED
    advice = "The client joins again with that id by itself."


class GroupMaxSizeReachedError(KafkaError):
    code = ErrorCode.GROUP_MAX_SIZE_REACHED
    advice = "Use fewer members, or raise the broker's group.max.size."


class FencedInstanceIdError(KafkaError):
    code = ErrorCode.FENCED_INSTANCE_ID
    advice = "Give every member of the group a group.instance.id of its own."


class GroupSubscribedToTopicError(KafkaError):
    code = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
    advice = "Its offsets can be deleted when no member reads the topic any more."


class UnstableOffsetCommitError(RetriableError):
    code = ErrorCode.UNSTABLE_OFFSET_COMMIT
    advice = "The transaction will end in a moment. The client tries again by itself."


class FencedMemberEpochError(KafkaError):
    code = ErrorCode.FENCED_MEMBER_EPOCH
    advice = "The group has gone on without the member, which joins again with the next poll."


class UnreleasedInstanceIdError(KafkaError):
    code = ErrorCode.UNRELEASED_INSTANCE_ID
    advice = (
        "Give every member a group.instance.id of its own, or wait until the session of the "
        "former one is over."
    )


class UnsupportedAssignorError(KafkaError):
    code = ErrorCode.UNSUPPORTED_ASSIGNOR
    advice = "group.remote.assignor must be among the broker's group.consumer.assignors."


class StaleMemberEpochError(KafkaError):
    code = ErrorCode.STALE_MEMBER_EPOCH
    advice = (
        "The member's epoch has just changed. The client tries again with the new one by itself."
    )


class GroupDeletionFailedError(KafkaError):
    code = ErrorCode.GROUP_DELETION_FAILED


class InvalidRegularExpressionError(KafkaError):
    code = ErrorCode.INVALID_REGULAR_EXPRESSION
    advice = "The broker reads patterns of topics as RE2 does."
