"""Cards of the APIs that show, make, change and delete topics and their partitions."""

from typing import Final

from headwater.broker.access.operations import Access, Operation, Resource
from headwater.broker.handlers.cards.api_card import ApiCard
from headwater.wire.api_keys import ApiKey

TOPIC_CARDS: Final = (
    ApiCard(
        ApiKey.METADATA,
        access=(
            Access(Operation.DESCRIBE, Resource.TOPIC),
            Access(Operation.CREATE, Resource.CLUSTER, "for topics that it shall create"),
            Access(Operation.CREATE, Resource.TOPIC, "for these, if not on the cluster"),
        ),
        notes={
            0: "an empty list of topics means all of them",
            1: "null means all topics and an empty list none; rack, controller, internal topics",
            2: "cluster id",
            3: "throttle time",
            4: "the client says whether a missing topic may be created",
            5: "offline replicas",
            6: "LISTENER_NOT_FOUND for a leader that the client's listener cannot reach",
            7: "leader epochs",
            8: "the operations that the client may do, for each topic; until v10 for the cluster",
            10: "topic ids in the answer",
            12: "topic ids in the request, with null names",
            13: "an error for the whole answer",
        },
    ),
    ApiCard(
        ApiKey.DESCRIBE_TOPIC_PARTITIONS,
        access=(Access(Operation.DESCRIBE, Resource.TOPIC),),
    ),
    ApiCard(
        ApiKey.CREATE_TOPICS,
        access=(
            Access(Operation.CREATE, Resource.CLUSTER),
            Access(Operation.CREATE, Resource.TOPIC, "if not on the cluster"),
            Access(Operation.DESCRIBE_CONFIGS, Resource.TOPIC, "to be told its settings"),
        ),
        notes={
            2: "names, numbers or a manual assignment, settings; validate only",
            4: "-1 as number of partitions or replicas means the broker's default",
            5: "the answer has the numbers and all settings of the new topic",
            7: "topic ids in the answer",
        },
    ),
    ApiCard(
        ApiKey.DELETE_TOPICS,
        access=(Access(Operation.DELETE, Resource.TOPIC),),
        notes={
            1: "names",
            3: "TOPIC_DELETION_DISABLED; before, a broker that does not delete says "
            "INVALID_REQUEST",
            5: "error messages",
            6: "a name or an id for each topic, and both in the answer",
        },
    ),
    ApiCard(
        ApiKey.CREATE_PARTITIONS,
        access=(Access(Operation.ALTER, Resource.TOPIC),),
        notes={
            0: "the new total; where the added ones go, or null to leave that to the controller",
            3: "THROTTLING_QUOTA_EXCEEDED may be answered; there are no such quotas here",
        },
    ),
    ApiCard(
        ApiKey.ELECT_LEADERS,
        access=(Access(Operation.ALTER, Resource.CLUSTER),),
        notes={
            0: "the preferred replica, the first of each partition's list, shall lead",
            1: "the type of the election, preferred (0) or unclean (1); an error of the request",
        },
    ),
    ApiCard(
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        access=(Access(Operation.ALTER, Resource.CLUSTER),),
        notes={
            0: "the brokers that shall hold a partition, or null to cancel its move; the answer "
            "comes when moves have begun",
            1: "the client says whether the number of replicas may change",
        },
    ),
    ApiCard(
        ApiKey.LIST_PARTITION_REASSIGNMENTS,
        access=(Access(Operation.DESCRIBE, Resource.CLUSTER),),
    ),
)
