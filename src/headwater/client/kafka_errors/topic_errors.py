"""Errors of topics and partitions: whether they exist, who leads them, how they are kept."""

from headwater.base.errors import ErrorCode, KafkaError, RetriableError


class UnknownTopicOrPartitionError(RetriableError):
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    advice = "Check the name, or create the topic; if it was just created, try again in a moment."


class LeaderNotAvailableError(RetriableError):
    code = ErrorCode.LEADER_NOT_AVAILABLE
    advice = "A leader is being elected. If it lasts, no replica of the partition is up."


class NotLeaderOrFollowerError(RetriableError):
    code = ErrorCode.NOT_LEADER_OR_FOLLOWER
    advice = "The leader has moved. The client follows by itself."


class ReplicaNotAvailableError(RetriableError):
    code = ErrorCode.REPLICA_NOT_AVAILABLE


class NotEnoughReplicasError(RetriableError):
    code = ErrorCode.NOT_ENOUGH_REPLICAS
    advice = (
        "Replicas are down or behind: acks=all needs as many in sync as the topic's "
        "min.insync.replicas says."
    )


class NotEnoughReplicasAfterAppendError(RetriableError):
    code = ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
    advice = (
        "The leader has written the records, so only an idempotent producer can send them again "
        "without doubling them."
    )


class TopicAlreadyExistsError(KafkaError):
    code = ErrorCode.TOPIC_ALREADY_EXISTS
    advice = "Use it as it is, or delete it first."


class InvalidPartitionsError(KafkaError):
    code = ErrorCode.INVALID_PARTITIONS
    advice = "A topic has at least one partition, and partitions can be added but not taken away."


class InvalidReplicationFactorError(KafkaError):
    code = ErrorCode.INVALID_REPLICATION_FACTOR
    advice = "It can be at most the number of brokers that are up."


class InvalidReplicaAssignmentError(KafkaError):
    code = ErrorCode.INVALID_REPLICA_ASSIGNMENT
    advice = (
        "Give all partitions the same number of brokers, each of which exists and is named once."
    )


class KafkaStorageError(RetriableError):
    code = ErrorCode.KAFKA_STORAGE_ERROR
    advice = "A disk of the broker is full or has failed; the broker's log says which."


class LogDirNotFoundError(KafkaError):
    code = ErrorCode.LOG_DIR_NOT_FOUND
    advice = "The directories of a broker are those in its log.dirs."


class ReassignmentInProgressError(KafkaError):
    code = ErrorCode.REASSIGNMENT_IN_PROGRESS
    advice = "Wait for it to end, or cancel it."


class TopicDeletionDisabledError(KafkaError):
    code = ErrorCode.TOPIC_DELETION_DISABLED
    advice = "The brokers' delete.topic.enable is false."


class PreferredLeaderNotAvailableError(RetriableError):
    code = ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE


class EligibleLeadersNotAvailableError(RetriableError):
    code = ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE


class ElectionNotNeededError(RetriableError):
    code = ErrorCode.ELECTION_NOT_NEEDED


class NoReassignmentInProgressError(KafkaError):
    code = ErrorCode.NO_REASSIGNMENT_IN_PROGRESS


class UnknownTopicIdError(RetriableError):
    code = ErrorCode.UNKNOWN_TOPIC_ID
    advice = (
        "The topic was just created, or deleted and made anew. The client asks for its new id by "
        "itself."
    )


class InconsistentTopicIdError(RetriableError):
    code = ErrorCode.INCONSISTENT_TOPIC_ID
