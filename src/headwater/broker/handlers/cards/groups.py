"""Cards of the APIs of consumer groups and their offsets."""

from typing import Final

from headwater.broker.access.operations import Access, Operation, Resource
from headwater.broker.handlers.cards.api_card import ApiCard
from headwater.wire.api_keys import ApiKey

GROUP_CARDS: Final = (
    ApiCard(
        ApiKey.FIND_COORDINATOR,
        access=(
            Access(Operation.DESCRIBE, Resource.GROUP, "for a group"),
            Access(Operation.DESCRIBE, Resource.TRANSACTIONAL_ID, "for a transactional id"),
        ),
        notes={
            1: "transactional ids too",
            4: "several keys at once",
            5: "TRANSACTION_ABORTABLE",
            6: "share groups, which are not served",
        },
    ),
    ApiCard(
        ApiKey.JOIN_GROUP,
        access=(Access(Operation.READ, Resource.GROUP),),
        notes={
            1: "rebalance timeout",
            2: "throttle time",
            4: "a new member is handed its id first, with MEMBER_ID_REQUIRED",
            5: "group instance ids",
            7: "the protocol type in the answer; no protocol name is null",
            8: "the reason",
            9: "the leader may be told to skip the assignment",
        },
    ),
    ApiCard(
        ApiKey.SYNC_GROUP,
        access=(Access(Operation.READ, Resource.GROUP),),
        notes={
            1: "throttle time",
            3: "group instance ids",
            5: "protocol type and name, which have to match the group's",
        },
    ),
    ApiCard(
        ApiKey.HEARTBEAT,
        access=(Access(Operation.READ, Resource.GROUP),),
        notes={1: "throttle time", 3: "group instance ids"},
    ),
    ApiCard(
        ApiKey.LEAVE_GROUP,
        access=(Access(Operation.READ, Resource.GROUP),),
        notes={
            1: "throttle time",
            3: "several members, each answered for itself; group instance ids",
            5: "the reason",
        },
    ),
    ApiCard(
        ApiKey.CONSUMER_GROUP_HEARTBEAT,
        access=(
            Access(Operation.READ, Resource.GROUP),
            Access(Operation.DESCRIBE, Resource.TOPIC, "for what it subscribes to by name"),
        ),
        notes={1: "regular expressions in subscriptions, and members choose their ids themselves"},
    ),
    ApiCard(
        ApiKey.OFFSET_COMMIT,
        access=(
            Access(Operation.READ, Resource.GROUP),
            Access(Operation.READ, Resource.TOPIC),
        ),
        notes={
            2: "until v4 the client may say how long the offsets are to be kept",
            3: "throttle time",
            5: "no retention time: the broker's setting alone counts",
            6: "leader epochs",
            7: "static members",
            9: "members of the newer group protocol; GROUP_ID_NOT_FOUND, STALE_MEMBER_EPOCH",
            10: "topics by id",
        },
    ),
    ApiCard(
        ApiKey.OFFSET_FETCH,
        access=(
            Access(Operation.DESCRIBE, Resource.GROUP),
            Access(Operation.DESCRIBE, Resource.TOPIC),
        ),
        notes={
            2: "all topics of a group (null); an error for the group as a whole",
            3: "throttle time",
            5: "leader epochs",
            7: "require_stable: UNSTABLE_OFFSET_COMMIT while a transaction on an offset is open",
            8: "several groups at once",
            9: "members of the newer group protocol; UNKNOWN_MEMBER_ID, STALE_MEMBER_EPOCH",
            10: "topics by id",
        },
    ),
    ApiCard(
        ApiKey.OFFSET_DELETE,
        access=(
            Access(Operation.DELETE, Resource.GROUP),
            Access(Operation.READ, Resource.TOPIC),
        ),
    ),
    ApiCard(
        ApiKey.LIST_GROUPS,
        access=(
            Access(Operation.DESCRIBE, Resource.CLUSTER),
            Access(Operation.DESCRIBE, Resource.GROUP, "if not on the cluster"),
        ),
        notes={
            1: "throttle time",
            4: "states, and a filter by them",
            5: "types (classic, consumer), and a filter by them",
        },
    ),
    ApiCard(
        ApiKey.DESCRIBE_GROUPS,
        access=(Access(Operation.DESCRIBE, Resource.GROUP),),
        notes={
            1: "throttle time",
            3: "which operations the client may do",
            4: "group instance ids",
            6: "a group that is not there is an error, GROUP_ID_NOT_FOUND, with a message",
        },
    ),
    ApiCard(
        ApiKey.CONSUMER_GROUP_DESCRIBE,
        access=(
            Access(Operation.DESCRIBE, Resource.GROUP),
            Access(Operation.DESCRIBE, Resource.TOPIC, "for what its members have"),
        ),
        notes={1: "tells of each member which protocol it speaks"},
    ),
    ApiCard(
        ApiKey.DELETE_GROUPS,
        access=(Access(Operation.DELETE, Resource.GROUP),),
        notes={
            1: "throttling is announced before it happens",
            3: "a sentence for each group that could not be deleted",
        },
    ),
)
