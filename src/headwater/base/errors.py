"""The errors that Kafka's protocol knows, and the exception that carries one.

`ErrorCode` is the only table of them: one row holds the code on the wire, whether a client may
simply try again, and a sentence for people. It covers Kafka 4.4. Subsystems raise exceptions of
their own; where the protocol has a code for what went wrong, such a class derives from `KafkaError`
and names the code once, as a class attribute:

    class CorruptRecordError(KafkaError):
        code = ErrorCode.CORRUPT_MESSAGE

    raise CorruptRecordError("The batch at position 17 is cut short.")
"""

from enum import IntEnum
from typing import Final, Self, overload

RETRY: Final = True
FINAL: Final = False

#: How much of an error's detail anybody gets to see.
TEXT_LENGTH_MAX: Final = 1000


class ErrorCode(IntEnum):
    """A row per error: code, whether trying again may help, and what it means."""

    retriable: bool
    message: str

    def __new__(cls, code: int, retriable: bool, message: str) -> Self:
        row = int.__new__(cls, code)
        row._value_ = code
        row.retriable = retriable
        row.message = message
        return row

    @classmethod
    def from_wire(cls, code: int) -> "ErrorCode":
        """The row for a code that a peer sent; one that this table lacks is a server error."""
        return _ROWS_BY_CODE.get(code, cls.UNKNOWN_SERVER_ERROR)

    UNKNOWN_SERVER_ERROR = -1, FINAL, "The server met an error that it did not expect."
    NONE = 0, FINAL, "There was no error."
    OFFSET_OUT_OF_RANGE = 1, FINAL, "The offset is outside the range that the partition holds."
    CORRUPT_MESSAGE = 2, RETRY, "The records are damaged, too large, or not in a valid form."
    UNKNOWN_TOPIC_OR_PARTITION = 3, RETRY, "This server does not have that topic or partition."
    INVALID_FETCH_SIZE = 4, FINAL, "The fetch size is not valid."
    LEADER_NOT_AVAILABLE = 5, RETRY, "The partition has no leader at the moment."
    NOT_LEADER_OR_FOLLOWER = 6, RETRY, "This broker neither leads nor follows the partition."
    REQUEST_TIMED_OUT = 7, RETRY, "The request took longer than its time limit."
    BROKER_NOT_AVAILABLE = 8, FINAL, "The broker is not available."
    REPLICA_NOT_AVAILABLE = 9, RETRY, "The replica is not available."
    MESSAGE_TOO_LARGE = 10, FINAL, "The message is larger than the server accepts."
    STALE_CONTROLLER_EPOCH = 11, FINAL, "The controller epoch is older than the current one."
    OFFSET_METADATA_TOO_LARGE = 12, FINAL, "The metadata of the offset commit is too large."
    NETWORK_EXCEPTION = 13, RETRY, "The connection failed before an answer came."
    COORDINATOR_LOAD_IN_PROGRESS = 14, RETRY, "The coordinator is still loading its state."
    COORDINATOR_NOT_AVAILABLE = 15, RETRY, "The coordinator is not available."
    NOT_COORDINATOR = 16, RETRY, "This broker is not the coordinator."
    INVALID_TOPIC_EXCEPTION = 17, FINAL, "The topic name is not valid or is reserved."
    RECORD_LIST_TOO_LARGE = 18, FINAL, "The records are larger than the configured segment size."
    NOT_ENOUGH_REPLICAS = 19, RETRY, "There are fewer in-sync replicas than required."
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = 20, RETRY, "Too few in-sync replicas wrote the records."
    INVALID_REQUIRED_ACKS = 21, FINAL, "The requested number of acknowledgements is not valid."
    ILLEGAL_GENERATION = 22, FINAL, "The generation is not the group's current one."
    INCONSISTENT_GROUP_PROTOCOL = 23, FINAL, "The member's protocols do not fit those of the group."
    INVALID_GROUP_ID = 24, FINAL, "The group id is not valid."
    UNKNOWN_MEMBER_ID = 25, FINAL, "The group has no member with that id."
    INVALID_SESSION_TIMEOUT = 26, FINAL, "The session timeout is outside the allowed range."
    REBALANCE_IN_PROGRESS = 27, FINAL, "The group is rebalancing and the member must join again."
    INVALID_COMMIT_OFFSET_SIZE = 28, FINAL, "The offset commit is larger than allowed."
    TOPIC_AUTHORIZATION_FAILED = 29, FINAL, "Access to the topic is denied."
    GROUP_AUTHORIZATION_FAILED = 30, FINAL, "Access to the group is denied."
    CLUSTER_AUTHORIZATION_FAILED = 31, FINAL, "Access to the cluster is denied."
    INVALID_TIMESTAMP = 32, FINAL, "The timestamp of the message is out of range."
    UNSUPPORTED_SASL_MECHANISM = 33, FINAL, "The server does not offer that SASL mechanism."
    ILLEGAL_SASL_STATE = 34, FINAL, "The request does not fit the state of the SASL exchange."
    UNSUPPORTED_VERSION = 35, FINAL, "The server does not support that version of the API."
    TOPIC_ALREADY_EXISTS = 36, FINAL, "A topic with that name exists already."
    INVALID_PARTITIONS = 37, FINAL, "The number of partitions is not valid."
    INVALID_REPLICATION_FACTOR = 38, FINAL, "The replication factor is not possible here."
    INVALID_REPLICA_ASSIGNMENT = 39, FINAL, "The replica assignment is not valid."
    INVALID_CONFIG = 40, FINAL, "The configuration is not valid."
    NOT_CONTROLLER = 41, RETRY, "This server is not the controller of the cluster."
    INVALID_REQUEST = 42, FINAL, "The request is malformed or contradicts itself."
    UNSUPPORTED_FOR_MESSAGE_FORMAT = 43, FINAL, "The topic's message format cannot do this."
    POLICY_VIOLATION = 44, FINAL, "A policy of the cluster forbids the request."
    OUT_OF_ORDER_SEQUENCE_NUMBER = 45, FINAL, "The sequence number does not follow the last."
    DUPLICATE_SEQUENCE_NUMBER = 46, FINAL, "The producer's sequence number was used before."
    INVALID_PRODUCER_EPOCH = 47, FINAL, "The producer's epoch is older than the current one."
    INVALID_TXN_STATE = 48, FINAL, "The transaction is in a state that does not allow this."
    INVALID_PRODUCER_ID_MAPPING = 49, FINAL, "The producer id is not that of the transaction."
    INVALID_TRANSACTION_TIMEOUT = 50, FINAL, "The transaction timeout is above the maximum."
    CONCURRENT_TRANSACTIONS = 51, RETRY, "Another operation on the transaction is going on."
    TRANSACTION_COORDINATOR_FENCED = 52, FINAL, "A newer transaction coordinator took over."
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53, FINAL, "Access to the transactional id is denied."
    SECURITY_DISABLED = 54, FINAL, "Security features are turned off."
    OPERATION_NOT_ATTEMPTED = 55, FINAL, "The operation was not tried because another one failed."
    KAFKA_STORAGE_ERROR = 56, RETRY, "The log directory cannot be read or written."
    LOG_DIR_NOT_FOUND = 57, FINAL, "The log directory is not among those configured."
    SASL_AUTHENTICATION_FAILED = 58, FINAL, "SASL authentication failed."
    UNKNOWN_PRODUCER_ID = 59, FINAL, "The partition no longer knows that producer id."
    REASSIGNMENT_IN_PROGRESS = 60, FINAL, "The partition is being reassigned already."
    DELEGATION_TOKEN_AUTH_DISABLED = 61, FINAL, "Delegation tokens are turned off."
    DELEGATION_TOKEN_NOT_FOUND = 62, FINAL, "The server does not have that delegation token."
    DELEGATION_TOKEN_OWNER_MISMATCH = 63, FINAL, "The delegation token belongs to somebody else."
    DELEGATION_TOKEN_REQUEST_NOT_ALLOWED = 64, FINAL, "This connection may not ask for tokens."
    DELEGATION_TOKEN_AUTHORIZATION_FAILED = 65, FINAL, "Access to the delegation token is denied."
    DELEGATION_TOKEN_EXPIRED = 66, FINAL, "The delegation token has expired."
    INVALID_PRINCIPAL_TYPE = 67, FINAL, "The type of principal is not supported."
    NON_EMPTY_GROUP = 68, FINAL, "The group still has members."
    GROUP_ID_NOT_FOUND = 69, FINAL, "There is no group with that id."
    FETCH_SESSION_ID_NOT_FOUND = 70, RETRY, "The server does not have that fetch session."
    INVALID_FETCH_SESSION_EPOCH = 71, RETRY, "The fetch session's epoch is not the expected one."
    LISTENER_NOT_FOUND = 72, RETRY, "The leader has no listener that matches the client's."
    TOPIC_DELETION_DISABLED = 73, FINAL, "Deleting topics is turned off."
    FENCED_LEADER_EPOCH = 74, RETRY, "The leader epoch is older than the broker's."
    UNKNOWN_LEADER_EPOCH = 75, RETRY, "The leader epoch is newer than the broker's."
    UNSUPPORTED_COMPRESSION_TYPE = 76, FINAL, "The compression type is not supported here."
    STALE_BROKER_EPOCH = 77, FINAL, "The broker epoch is older than the current one."
    OFFSET_NOT_AVAILABLE = 78, RETRY, "The leader does not know its high watermark yet."
    MEMBER_ID_REQUIRED = 79, FINAL, "The member must join again with the id it was given."
    PREFERRED_LEADER_NOT_AVAILABLE = 80, RETRY, "The preferred leader is not available."
    GROUP_MAX_SIZE_REACHED = 81, FINAL, "The group has its maximum number of members."
    FENCED_INSTANCE_ID = 82, FINAL, "A newer member took over that static instance id."
    ELIGIBLE_LEADERS_NOT_AVAILABLE = 83, RETRY, "No replica is eligible to become the leader."
    ELECTION_NOT_NEEDED = 84, RETRY, "The partition has the wanted leader already."
    NO_REASSIGNMENT_IN_PROGRESS = 85, FINAL, "The partition is not being reassigned."
    GROUP_SUBSCRIBED_TO_TOPIC = 86, FINAL, "A member of the group still reads that topic."
    INVALID_RECORD = 87, FINAL, "The record failed a check of the broker and was refused."
    UNSTABLE_OFFSET_COMMIT = 88, RETRY, "A transaction on these offsets is not finished yet."
    THROTTLING_QUOTA_EXCEEDED = 89, RETRY, "The quota is used up; wait and try again."
    PRODUCER_FENCED = 90, FINAL, "A newer producer with the same transactional id took over."
    RESOURCE_NOT_FOUND = 91, FINAL, "There is no such resource."
    DUPLICATE_RESOURCE = 92, FINAL, "The request names the same resource more than once."
    UNACCEPTABLE_CREDENTIAL = 93, FINAL, "The credential is not acceptable."
    INCONSISTENT_VOTER_SET = 94, FINAL, "The sender and the receiver disagree on the set of voters."
    INVALID_UPDATE_VERSION = 95, FINAL, "The version in the update is not valid."
    FEATURE_UPDATE_FAILED = 96, FINAL, "The features could not be updated."
    PRINCIPAL_DESERIALIZATION_FAILURE = 97, FINAL, "The forwarded principal could not be read."
    SNAPSHOT_NOT_FOUND = 98, FINAL, "There is no such snapshot."
    POSITION_OUT_OF_RANGE = 99, FINAL, "The position is outside the snapshot."
    UNKNOWN_TOPIC_ID = 100, RETRY, "This server does not know that topic id."
    DUPLICATE_BROKER_REGISTRATION = 101, FINAL, "The broker id is in use by another broker."
    BROKER_ID_NOT_REGISTERED = 102, FINAL, "The broker is not registered."
    INCONSISTENT_TOPIC_ID = 103, RETRY, "The topic id is not that of the topic in the log."
    INCONSISTENT_CLUSTER_ID = 104, FINAL, "The cluster id is not that of this cluster."
    TRANSACTIONAL_ID_NOT_FOUND = 105, FINAL, "There is no such transactional id."
    FETCH_SESSION_TOPIC_ID_ERROR = 106, RETRY, "The fetch session mixes topic ids and names."
    INELIGIBLE_REPLICA = 107, FINAL, "The replica may not join the in-sync replicas."
    NEW_LEADER_ELECTED = 108, FINAL, "The change moved the partition to a new leader."
    OFFSET_MOVED_TO_TIERED_STORAGE = 109, FINAL, "The offset was moved to tiered storage."
    FENCED_MEMBER_EPOCH = 110, FINAL, "The member's epoch is behind and it must rejoin."
    UNRELEASED_INSTANCE_ID = 111, FINAL, "Another member still holds that static instance id."
    UNSUPPORTED_ASSIGNOR = 112, FINAL, "The group does not support that assignor."
    STALE_MEMBER_EPOCH = 113, FINAL, "The member's epoch is old; it should retry with the new one."
    MISMATCHED_ENDPOINT_TYPE = 114, FINAL, "The request reached the wrong kind of endpoint."
    UNSUPPORTED_ENDPOINT_TYPE = 115, FINAL, "The kind of endpoint is not supported."
    UNKNOWN_CONTROLLER_ID = 116, FINAL, "There is no controller with that id."
    UNKNOWN_SUBSCRIPTION_ID = 117, FINAL, "The telemetry subscription is out of date."
    TELEMETRY_TOO_LARGE = 118, FINAL, "The telemetry is larger than the server accepts."
    INVALID_REGISTRATION = 119, FINAL, "The registration is not valid."
    TRANSACTION_ABORTABLE = 120, FINAL, "The transaction must be aborted to go on."
    INVALID_RECORD_STATE = 121, FINAL, "The record is in a state that does not allow this."
    SHARE_SESSION_NOT_FOUND = 122, RETRY, "The server does not have that share session."
    INVALID_SHARE_SESSION_EPOCH = 123, RETRY, "The share session's epoch is not the expected one."
    FENCED_STATE_EPOCH = 124, FINAL, "The state epoch is older than the share coordinator's."
    INVALID_VOTER_KEY = 125, FINAL, "The voter key is not that of the receiver."
    DUPLICATE_VOTER = 126, FINAL, "The voter is in the set of voters already."
    VOTER_NOT_FOUND = 127, FINAL, "The voter is not in the set of voters."
    INVALID_REGULAR_EXPRESSION = 128, FINAL, "The regular expression is not valid."
    REBOOTSTRAP_REQUIRED = 129, FINAL, "The client must bootstrap again."
    STREAMS_INVALID_TOPOLOGY = 130, FINAL, "The topology of the streams application is not valid."
    STREAMS_INVALID_TOPOLOGY_EPOCH = 131, FINAL, "The epoch of the streams topology is not valid."
    STREAMS_TOPOLOGY_FENCED = 132, FINAL, "The epoch of the streams topology is out of date."
    SHARE_SESSION_LIMIT_REACHED = 133, RETRY, "The server has its maximum number of share sessions."
    GROUP_DELETION_FAILED = 134, FINAL, "The group could not be deleted."
    STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED = (
        135,
        FINAL,
        "The description of the streams topology could not be updated.",
    )
    CONTROLLER_ID_NOT_REGISTERED = 136, FINAL, "The controller is not registered."


_ROWS_BY_CODE: Final[dict[int, ErrorCode]] = {row.value: row for row in ErrorCode}


class KafkaError(Exception):
    """A failure that has a code in Kafka's protocol.

    It is raised as `KafkaError(ErrorCode.X, "detail")`, or with the detail alone by a subclass that
    fixes `code`. Without a detail the table's own sentence is used.
    """

    code: ErrorCode = ErrorCode.UNKNOWN_SERVER_ERROR
    #: What somebody who meets it can do, where that is known; tracebacks show it.
    advice: str = ""

    @overload
    def __init__(self, code: ErrorCode, detail: str = "", /) -> None: ...

    @overload
    def __init__(self, detail: str = "", /) -> None: ...

    def __init__(self, first: ErrorCode | str = "", detail: str = "", /) -> None:
        if isinstance(first, ErrorCode):
            self.code = first
            self.detail = detail
        else:
            self.detail = first
        # `args` keep what the caller passed, which is what makes the exception picklable: it may
        # cross from a child process to its parent.
        super().__init__(*((first, detail) if isinstance(first, ErrorCode) else (first,)))
        if self.advice:
            self.add_note(self.advice)

    def __str__(self) -> str:
        # A detail may quote what a peer sent. It goes into answers, whose older versions have room
        # for 32 KiB of text, and into the log.
        text = self.detail or self.code.message
        return text if len(text) <= TEXT_LENGTH_MAX else f"{text[:TEXT_LENGTH_MAX]}..."

    @property
    def retriable(self) -> bool:
        """Whether the same request may succeed if it is sent again."""
        return self.code.retriable


class RetriableError(KafkaError):
    """The same request may succeed if it is sent again. The client has tried that for a while."""


# The client has a class for every code. These are here because the layers below it raise them too.


class CorruptMessageError(RetriableError):
    code = ErrorCode.CORRUPT_MESSAGE
    advice = "If it lasts, a disk holds damaged data there; seek past the offset to go on."


class InvalidConfigError(KafkaError):
    code = ErrorCode.INVALID_CONFIG


class InvalidRecordError(KafkaError):
    code = ErrorCode.INVALID_RECORD
    advice = "A compacted topic takes no record without a key; timestamps may be bounded too."


class InvalidTopicError(KafkaError):
    code = ErrorCode.INVALID_TOPIC_EXCEPTION
    advice = "A name has 1 to 249 letters, digits, dots, underscores and dashes."


class NetworkError(RetriableError):
    code = ErrorCode.NETWORK_EXCEPTION
    advice = "What was asked for may have been done nevertheless."


class RequestTimedOutError(RetriableError):
    code = ErrorCode.REQUEST_TIMED_OUT
    advice = "What was asked for may have been done nevertheless, or may still be."


class UnsupportedCompressionTypeError(KafkaError):
    code = ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    advice = "Use another compression.type."


class UnsupportedVersionError(KafkaError):
    code = ErrorCode.UNSUPPORTED_VERSION
    advice = "The broker is too old, or too new, for this."
