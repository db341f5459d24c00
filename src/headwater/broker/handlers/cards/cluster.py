"""Cards of the APIs that show and change a cluster, its brokers and their settings."""

from typing import Final

from headwater.broker.access.operations import Access, Operation, Resource
from headwater.broker.handlers.cards.api_card import ApiCard
from headwater.wire.api_keys import ApiKey

_CHANGE_SETTINGS: Final = (
    Access(Operation.ALTER_CONFIGS, Resource.TOPIC, "for a topic"),
    Access(Operation.ALTER_CONFIGS, Resource.GROUP, "for a group"),
    Access(Operation.ALTER_CONFIGS, Resource.CLUSTER, "for a broker, a logger or client metrics"),
)

CLUSTER_CARDS: Final = (
    ApiCard(
        ApiKey.API_VERSIONS,
        notes={
            3: "the client names its software; features of the cluster in tagged fields",
            4: "features may start at version 0",
            5: "the client may name the cluster and the broker that it wants to talk to; "
            "REBOOTSTRAP_REQUIRED if it has reached another one",
        },
    ),
    ApiCard(
        ApiKey.DESCRIBE_CLUSTER,
        access=(
            Access(Operation.DESCRIBE, Resource.CLUSTER, "to be told which operations are allowed"),
        ),
        notes={
            0: "brokers, cluster id, controller, and the operations that the client may do",
            1: "endpoint type: brokers (1) or controllers (2)",
            2: "brokers that are registered but fenced, on request; there are none here",
        },
    ),
    ApiCard(
        ApiKey.DESCRIBE_CONFIGS,
        access=(
            Access(Operation.DESCRIBE_CONFIGS, Resource.TOPIC, "for a topic"),
            Access(Operation.DESCRIBE_CONFIGS, Resource.GROUP, "for a group"),
            Access(
                Operation.DESCRIBE_CONFIGS,
                Resource.CLUSTER,
                "for a broker, a logger or client metrics",
            ),
        ),
        notes={
            1: "where a value comes from, and its synonyms on request",
            3: "the type of each setting, and what it means on request",
        },
    ),
    ApiCard(
        ApiKey.LIST_CONFIG_RESOURCES,
        access=(Access(Operation.DESCRIBE_CONFIGS, Resource.CLUSTER),),
        notes={
            0: "subscriptions to client metrics",
            1: "any types of resources; none named means all",
        },
    ),
    ApiCard(
        ApiKey.ALTER_CONFIGS,
        access=_CHANGE_SETTINGS,
        notes={
            0: "resources with the settings that they shall have; what is not named is removed",
        },
    ),
    ApiCard(
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        access=_CHANGE_SETTINGS,
        notes={
            0: "set (0) or delete (1) a setting, append to (2) or subtract from (3) a list",
        },
    ),
    ApiCard(
        ApiKey.GET_TELEMETRY_SUBSCRIPTIONS,
        notes={
            0: "which metrics a client is to push, how often; told only where somebody receives "
            "them"
        },
    ),
    ApiCard(
        ApiKey.PUSH_TELEMETRY,
        notes={0: "metrics of a client in OpenTelemetry's format, compressed or not"},
    ),
    ApiCard(
        ApiKey.DESCRIBE_LOG_DIRS,
        access=(Access(Operation.DESCRIBE, Resource.CLUSTER),),
        notes={
            1: "partitions with their size and how far they are behind; null asks for all of them",
            3: "an error of the whole request",
            4: "the size of each directory's disk and the space left on it",
            5: "whether a directory is cordoned, and takes no new partitions",
        },
    ),
    ApiCard(
        ApiKey.ALTER_REPLICA_LOG_DIRS,
        access=(Access(Operation.ALTER, Resource.CLUSTER),),
        notes={1: "directories, each with the partitions that shall be in it"},
    ),
    ApiCard(
        ApiKey.UNREGISTER_BROKER,
        access=(Access(Operation.ALTER, Resource.CLUSTER),),
        notes={
            0: "what is left of a broker that was stopped for good is forgotten; INVALID_REQUEST "
            "for one that lives, which Kafka takes out of the cluster as it runs"
        },
    ),
)
