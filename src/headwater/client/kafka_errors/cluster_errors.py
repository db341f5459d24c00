"""Errors of a cluster as a whole: its brokers, its controller, and what it does not take."""

from headwater.base.errors import ErrorCode, KafkaError, RetriableError


class UnknownServerError(KafkaError):
    code = ErrorCode.UNKNOWN_SERVER_ERROR
    advice = "The broker's log says more."


class BrokerNotAvailableError(KafkaError):
    code = ErrorCode.BROKER_NOT_AVAILABLE
    advice = (
        "Check bootstrap.servers, that the brokers run, and that the addresses they advertise can "
        "be reached from here."
    )


class StaleControllerEpochError(KafkaError):
    code = ErrorCode.STALE_CONTROLLER_EPOCH


class NotControllerError(RetriableError):
    code = ErrorCode.NOT_CONTROLLER
    advice = "The controller has moved. The client follows by itself."


class InvalidRequestError(KafkaError):
    code = ErrorCode.INVALID_REQUEST


class PolicyViolationError(KafkaError):
    code = ErrorCode.POLICY_VIOLATION
    advice = "Ask those who run the cluster what its policy allows."


class OperationNotAttemptedError(KafkaError):
    code = ErrorCode.OPERATION_NOT_ATTEMPTED
    advice = "See the errors of the others in the same call."


class ListenerNotFoundError(RetriableError):
    code = ErrorCode.LISTENER_NOT_FOUND
    advice = (
        "The leader's broker lacks the listener that the client uses: compare the brokers' "
        "listeners."
    )


class ThrottlingQuotaExceededError(RetriableError):
    code = ErrorCode.THROTTLING_QUOTA_EXCEEDED
    advice = "Make fewer changes at once, or have the quota raised."


class ResourceNotFoundError(KafkaError):
    code = ErrorCode.RESOURCE_NOT_FOUND


class DuplicateResourceError(KafkaError):
    code = ErrorCode.DUPLICATE_RESOURCE
    advice = "Name each only once in a call."


class InvalidUpdateVersionError(KafkaError):
    code = ErrorCode.INVALID_UPDATE_VERSION


class FeatureUpdateFailedError(KafkaError):
    code = ErrorCode.FEATURE_UPDATE_FAILED


class InconsistentClusterIdError(KafkaError):
    code = ErrorCode.INCONSISTENT_CLUSTER_ID
    advice = "Check bootstrap.servers: they belong to different clusters."


class MismatchedEndpointTypeError(KafkaError):
    code = ErrorCode.MISMATCHED_ENDPOINT_TYPE
    advice = "Check bootstrap.servers: a client talks to brokers, not to controllers."


class UnsupportedEndpointTypeError(KafkaError):
    code = ErrorCode.UNSUPPORTED_ENDPOINT_TYPE


class RebootstrapRequiredError(KafkaError):
    code = ErrorCode.REBOOTSTRAP_REQUIRED
    advice = "The client asks the bootstrap servers again by itself."
