"""Cards of the APIs of transactions and of the producers behind them."""

from typing import Final

from headwater.broker.access.operations import Access, Operation, Resource
from headwater.broker.handlers.cards.api_card import ApiCard
from headwater.wire.api_keys import ApiKey, VersionRange

_WRITE_TRANSACTION: Final = Access(Operation.WRITE, Resource.TRANSACTIONAL_ID)

TRANSACTION_CARDS: Final = (
    ApiCard(
        ApiKey.INIT_PRODUCER_ID,
        access=(
            Access(Operation.WRITE, Resource.TRANSACTIONAL_ID, "with a transactional id"),
            Access(Operation.IDEMPOTENT_WRITE, Resource.CLUSTER, "without one"),
            Access(Operation.WRITE, Resource.TOPIC, "of any, if not on the cluster"),
        ),
        notes={
            0: "transactional id and transaction timeout",
            3: "the producer's present id and epoch, when it goes on after an error (KIP-360)",
            4: "PRODUCER_FENCED for producers whose transactional id was taken over",
            5: "TRANSACTION_ABORTABLE",
            6: "two-phase commit: no timeout, and an open transaction may be kept (KIP-939)",
        },
    ),
    ApiCard(
        ApiKey.ADD_PARTITIONS_TO_TXN,
        access=(
            Access(Operation.WRITE, Resource.TRANSACTIONAL_ID, "until v3"),
            Access(Operation.WRITE, Resource.TOPIC, "until v3"),
            Access(Operation.CLUSTER_ACTION, Resource.CLUSTER, "from v4 on"),
        ),
        notes={
            0: "one transaction",
            2: "PRODUCER_FENCED",
            4: "several transactions at once, and only to verify: for brokers (KIP-890)",
            5: "clients know TRANSACTION_ABORTABLE too",
        },
    ),
    ApiCard(
        ApiKey.ADD_OFFSETS_TO_TXN,
        access=(_WRITE_TRANSACTION, Access(Operation.READ, Resource.GROUP)),
        notes={2: "PRODUCER_FENCED", 4: "TRANSACTION_ABORTABLE"},
    ),
    ApiCard(
        ApiKey.TXN_OFFSET_COMMIT,
        access=(
            _WRITE_TRANSACTION,
            Access(Operation.READ, Resource.GROUP),
            Access(Operation.READ, Resource.TOPIC),
        ),
        notes={
            2: "leader epochs; COORDINATOR_LOAD_IN_PROGRESS, which older clients do not understand",
            3: "who in the group commits",
            4: "TRANSACTION_ABORTABLE",
            5: "the group's partition becomes part of the transaction by itself",
            6: "topics by id; GROUP_ID_NOT_FOUND, STALE_MEMBER_EPOCH",
        },
    ),
    ApiCard(
        ApiKey.END_TXN,
        access=(_WRITE_TRANSACTION,),
        notes={
            2: "PRODUCER_FENCED",
            4: "TRANSACTION_ABORTABLE",
            5: "the answer has the producer id and epoch of the next transaction (KIP-890)",
        },
    ),
    ApiCard(
        ApiKey.WRITE_TXN_MARKERS,
        access=(
            Access(Operation.CLUSTER_ACTION, Resource.CLUSTER, "as a coordinator"),
            Access(Operation.ALTER, Resource.CLUSTER, "to abort a transaction that hangs"),
        ),
        # Version 2 tells the transaction version too. Markers are the brokers' own business, and
        # ours have no need of it; an administrator's tool can do without.
        versions=VersionRange(1, 1),
    ),
    ApiCard(
        ApiKey.DESCRIBE_TRANSACTIONS,
        access=(
            Access(Operation.DESCRIBE, Resource.TRANSACTIONAL_ID),
            Access(Operation.DESCRIBE, Resource.TOPIC, "for the partitions that are shown"),
        ),
    ),
    ApiCard(
        ApiKey.LIST_TRANSACTIONS,
        access=(Access(Operation.DESCRIBE, Resource.TRANSACTIONAL_ID),),
        notes={
            0: "filters by state and producer id",
            1: "only those that began longer ago than a duration",
            2: "only ids that match a pattern as a whole",
        },
    ),
)
