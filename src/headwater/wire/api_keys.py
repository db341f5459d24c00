"""The table of Kafka's APIs: keys, the versions that have a schema, and the first flexible one.

The classes of an API's messages are in `wire/messages/<name>.py`, where the name is the member's in
lower case; they are imported when they are first asked for. The table has no rows for the APIs of
share groups, of Kafka Streams' groups and of the Raft quorum, which Headwater does not speak.
"""

from collections.abc import Mapping
from enum import IntEnum
from functools import cache
from importlib import import_module
from types import MappingProxyType
from typing import Final, Self

from headwater.wire.schema import NEVER_FLEXIBLE, Message, VersionRange

__all__ = (
    "DELAY_APIS",
    "FLEXIBLE_SINCE",
    "INTER_BROKER_APIS",
    "PRIVATE_APIS",
    "SCHEMA_VERSIONS",
    "ApiKey",
    "VersionRange",
    "request_class",
    "response_class",
)


class ApiKey(IntEnum):
    """A row per API: key, lowest and highest version with a schema, first flexible version."""

    schema_versions: VersionRange
    flexible_since: int

    # The defaults never apply to a row: they let a type checker accept `ApiKey(3)`.
    def __new__(
        cls, key: int, lowest: int = 0, highest: int = 0, flexible_since: int = NEVER_FLEXIBLE
    ) -> Self:
        row = int.__new__(cls, key)
        row._value_ = key
        row.schema_versions = VersionRange(lowest, highest)
        row.flexible_since = flexible_since
        return row

    PRODUCE = 0, 3, 13, 9
    FETCH = 1, 4, 18, 12
    LIST_OFFSETS = 2, 1, 11, 6
    METADATA = 3, 0, 13, 9
    OFFSET_COMMIT = 8, 2, 10, 8
    OFFSET_FETCH = 9, 1, 10, 6
    FIND_COORDINATOR = 10, 0, 6, 3
    JOIN_GROUP = 11, 0, 9, 6
    HEARTBEAT = 12, 0, 4, 4
    LEAVE_GROUP = 13, 0, 5, 4
    SYNC_GROUP = 14, 0, 5, 4
    DESCRIBE_GROUPS = 15, 0, 6, 5
    LIST_GROUPS = 16, 0, 5, 3
    SASL_HANDSHAKE = 17, 0, 1, NEVER_FLEXIBLE
    API_VERSIONS = 18, 0, 5, 3
    CREATE_TOPICS = 19, 2, 7, 5
    DELETE_TOPICS = 20, 1, 6, 4
    DELETE_RECORDS = 21, 0, 2, 2
    INIT_PRODUCER_ID = 22, 0, 6, 2
    OFFSET_FOR_LEADER_EPOCH = 23, 2, 4, 4
    ADD_PARTITIONS_TO_TXN = 24, 0, 5, 3
    ADD_OFFSETS_TO_TXN = 25, 0, 4, 3
    END_TXN = 26, 0, 5, 3
    WRITE_TXN_MARKERS = 27, 1, 2, 1
    TXN_OFFSET_COMMIT = 28, 0, 6, 3
    DESCRIBE_ACLS = 29, 1, 3, 2
    CREATE_ACLS = 30, 1, 3, 2
    DELETE_ACLS = 31, 1, 3, 2
    DESCRIBE_CONFIGS = 32, 1, 4, 4
    ALTER_CONFIGS = 33, 0, 2, 2
    ALTER_REPLICA_LOG_DIRS = 34, 1, 2, 2
    DESCRIBE_LOG_DIRS = 35, 1, 5, 2
    SASL_AUTHENTICATE = 36, 0, 2, 2
    CREATE_PARTITIONS = 37, 0, 3, 2
    CREATE_DELEGATION_TOKEN = 38, 1, 3, 2
    RENEW_DELEGATION_TOKEN = 39, 1, 2, 2
    EXPIRE_DELEGATION_TOKEN = 40, 1, 2, 2
    DESCRIBE_DELEGATION_TOKEN = 41, 1, 3, 2
    DELETE_GROUPS = 42, 0, 3, 2
    ELECT_LEADERS = 43, 0, 2, 2
    INCREMENTAL_ALTER_CONFIGS = 44, 0, 1, 1
    ALTER_PARTITION_REASSIGNMENTS = 45, 0, 1, 0
    LIST_PARTITION_REASSIGNMENTS = 46, 0, 0, 0
    OFFSET_DELETE = 47, 0, 0, NEVER_FLEXIBLE
    DESCRIBE_CLIENT_QUOTAS = 48, 0, 1, 1
    ALTER_CLIENT_QUOTAS = 49, 0, 1, 1
    DESCRIBE_USER_SCRAM_CREDENTIALS = 50, 0, 0, 0
    ALTER_USER_SCRAM_CREDENTIALS = 51, 0, 0, 0
    DESCRIBE_QUORUM = 55, 0, 2, 0
    ALTER_PARTITION = 56, 2, 3, 2
    UPDATE_FEATURES = 57, 0, 2, 0
    ENVELOPE = 58, 0, 0, 0
    DESCRIBE_CLUSTER = 60, 0, 2, 0
    DESCRIBE_PRODUCERS = 61, 0, 0, 0
    BROKER_REGISTRATION = 62, 0, 4, 0
    BROKER_HEARTBEAT = 63, 0, 2, 0
    UNREGISTER_BROKER = 64, 0, 0, 0
    DESCRIBE_TRANSACTIONS = 65, 0, 0, 0
    LIST_TRANSACTIONS = 66, 0, 2, 0
    ALLOCATE_PRODUCER_IDS = 67, 0, 0, 0
    CONSUMER_GROUP_HEARTBEAT = 68, 0, 1, 0
    CONSUMER_GROUP_DESCRIBE = 69, 0, 1, 0
    CONTROLLER_REGISTRATION = 70, 0, 0, 0
    GET_TELEMETRY_SUBSCRIPTIONS = 71, 0, 0, 0
    PUSH_TELEMETRY = 72, 0, 0, 0
    ASSIGN_REPLICAS_TO_DIRS = 73, 0, 0, 0
    LIST_CONFIG_RESOURCES = 74, 0, 1, 0
    DESCRIBE_TOPIC_PARTITIONS = 75, 0, 0, 0
    # Ours: see `PRIVATE_APIS`.
    UPDATE_IMAGE = 10_000, 0, 0, 0
    SET_CONFIGS = 10_001, 0, 0, 0
    PROVE_BROKER = 10_002, 0, 0, 0
    DESCRIBE_DELAYED = 10_003, 0, 1, 0
    ALTER_DELAYED = 10_004, 0, 0, 0
    PUBLISH_AUDIT = 10_010, 0, 0, 0
    DESCRIBE_LOG_CHECKSUMS = 10_011, 0, 0, 0


#: What Kafka does not have; the classes are in `wire/cluster_messages`.
PRIVATE_APIS: Final = frozenset(
    {
        ApiKey.UPDATE_IMAGE,
        ApiKey.SET_CONFIGS,
        ApiKey.PROVE_BROKER,
        ApiKey.DESCRIBE_DELAYED,
        ApiKey.ALTER_DELAYED,
        ApiKey.PUBLISH_AUDIT,
        ApiKey.DESCRIBE_LOG_CHECKSUMS,
    }
)
#: What Kafka has, and we have with a tagged field more; the classes are in `wire/cluster_messages`.
_EXTENDED_APIS: Final = frozenset(
    {ApiKey.ALTER_PARTITION_REASSIGNMENTS, ApiKey.LIST_PARTITION_REASSIGNMENTS}
)
#: What clients ask for delayed messages with. ApiVersions tells of them, and so a client knows a
#: cluster that delays; clients that have not heard of them pass over them.
DELAY_APIS: Final = frozenset({ApiKey.DESCRIBE_DELAYED, ApiKey.ALTER_DELAYED})
#: All of ours that clients may ask.
_FOR_CLIENTS: Final = DELAY_APIS | {ApiKey.DESCRIBE_LOG_CHECKSUMS}
#: What brokers of one cluster ask each other. Clients are not told of these; brokers tell each
#: other which they serve when they have proven to be brokers (ProveBroker).
INTER_BROKER_APIS: Final = (PRIVATE_APIS - _FOR_CLIENTS) | {
    ApiKey.ALLOCATE_PRODUCER_IDS,
    ApiKey.ALTER_PARTITION,
    ApiKey.BROKER_HEARTBEAT,
}

#: What brokers serve that do not tell: those of 0.9.0, which may be there during an upgrade.
INTER_BROKER_APIS_AT_FIRST: Final = frozenset(
    {
        ApiKey.UPDATE_IMAGE,
        ApiKey.SET_CONFIGS,
        ApiKey.PROVE_BROKER,
        ApiKey.ALLOCATE_PRODUCER_IDS,
        ApiKey.ALTER_PARTITION,
        ApiKey.BROKER_HEARTBEAT,
    }
)

SCHEMA_VERSIONS: Final[Mapping[ApiKey, VersionRange]] = MappingProxyType(
    {key: key.schema_versions for key in ApiKey}
)
FLEXIBLE_SINCE: Final[Mapping[ApiKey, int]] = MappingProxyType(
    {key: key.flexible_since for key in ApiKey}
)


@cache
def request_class(api_key: int) -> type[Message]:
    """The class of the API's requests; `ValueError` if the table has no such API."""
    return _message_class(ApiKey(api_key), "Request")


@cache
def response_class(api_key: int) -> type[Message]:
    """The class of the API's responses; `ValueError` if the table has no such API."""
    return _message_class(ApiKey(api_key), "Response")


def _message_class(api_key: ApiKey, suffix: str) -> type[Message]:
    module_name = api_key.name.lower()
    is_ours = api_key in PRIVATE_APIS or api_key in _EXTENDED_APIS
    package = "cluster_messages" if is_ours else "messages"
    module = import_module(f"headwater.wire.{package}.{module_name}")
    class_name = "".join(word.capitalize() for word in module_name.split("_")) + suffix
    message_class: type[Message] = getattr(module, class_name)
    return message_class
