"""Errors that brokers have among themselves, and those of share groups, streams and telemetry."""

from headwater.base.errors import ErrorCode, KafkaError, RetriableError


class StaleBrokerEpochError(KafkaError):
    code = ErrorCode.STALE_BROKER_EPOCH


class InconsistentVoterSetError(KafkaError):
    code = ErrorCode.INCONSISTENT_VOTER_SET


class SnapshotNotFoundError(KafkaError):
    code = ErrorCode.SNAPSHOT_NOT_FOUND


class PositionOutOfRangeError(KafkaError):
    code = ErrorCode.POSITION_OUT_OF_RANGE


class DuplicateBrokerRegistrationError(KafkaError):
    code = ErrorCode.DUPLICATE_BROKER_REGISTRATION


class BrokerIdNotRegisteredError(KafkaError):
    code = ErrorCode.BROKER_ID_NOT_REGISTERED


class IneligibleReplicaError(KafkaError):
    code = ErrorCode.INELIGIBLE_REPLICA


class NewLeaderElectedError(KafkaError):
    code = ErrorCode.NEW_LEADER_ELECTED


class UnknownControllerIdError(KafkaError):
    code = ErrorCode.UNKNOWN_CONTROLLER_ID


class UnknownSubscriptionIdError(KafkaError):
    code = ErrorCode.UNKNOWN_SUBSCRIPTION_ID


class TelemetryTooLargeError(KafkaError):
    code = ErrorCode.TELEMETRY_TOO_LARGE


class InvalidRegistrationError(KafkaError):
    code = ErrorCode.INVALID_REGISTRATION


class InvalidRecordStateError(KafkaError):
    code = ErrorCode.INVALID_RECORD_STATE


class ShareSessionNotFoundError(RetriableError):
    code = ErrorCode.SHARE_SESSION_NOT_FOUND


class InvalidShareSessionEpochError(RetriableError):
    code = ErrorCode.INVALID_SHARE_SESSION_EPOCH


class FencedStateEpochError(KafkaError):
    code = ErrorCode.FENCED_STATE_EPOCH


class InvalidVoterKeyError(KafkaError):
    code = ErrorCode.INVALID_VOTER_KEY


class DuplicateVoterError(KafkaError):
    code = ErrorCode.DUPLICATE_VOTER


class VoterNotFoundError(KafkaError):
    code = ErrorCode.VOTER_NOT_FOUND


class StreamsInvalidTopologyError(KafkaError):
    code = ErrorCode.STREAMS_INVALID_TOPOLOGY


class StreamsInvalidTopologyEpochError(KafkaError):
    code = ErrorCode.STREAMS_INVALID_TOPOLOGY_EPOCH


class StreamsTopologyFencedError(KafkaError):
    code = ErrorCode.STREAMS_TOPOLOGY_FENCED


class ShareSessionLimitReachedError(RetriableError):
    code = ErrorCode.SHARE_SESSION_LIMIT_REACHED


class StreamsTopologyDescriptionUpdateFailedError(KafkaError):
    code = ErrorCode.STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED


class ControllerIdNotRegisteredError(KafkaError):
    code = ErrorCode.CONTROLLER_ID_NOT_REGISTERED
