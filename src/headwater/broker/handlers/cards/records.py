"""Cards of the APIs that write, read and find records."""

from typing import Final

from headwater.broker.access.operations import Access, Operation, Resource
from headwater.broker.handlers.cards.api_card import ApiCard
from headwater.wire.api_keys import ApiKey

RECORD_CARDS: Final = (
    ApiCard(
        ApiKey.PRODUCE,
        access=(
            Access(Operation.WRITE, Resource.TOPIC),
            Access(Operation.WRITE, Resource.TRANSACTIONAL_ID, "in a transaction"),
        ),
        notes={
            3: "the current batch format; older ones are refused",
            5: "the answer has the log start offset",
            7: "zstd is allowed",
            8: "the answer tells which records of a batch were refused, and why",
            10: "the answer may name the new leader",
            12: "transactions without AddPartitionsToTxn",
            13: "topics by id",
        },
    ),
    ApiCard(
        ApiKey.FETCH,
        access=(
            Access(Operation.READ, Resource.TOPIC, "as a consumer"),
            Access(Operation.CLUSTER_ACTION, Resource.CLUSTER, "as a follower"),
        ),
        notes={
            4: "isolation level, aborted transactions",
            5: "log start offset",
            7: "incremental fetch sessions",
            9: "the reader's leader epoch is checked",
            10: "zstd",
            12: "the leader finds out where a reader's log parted from its own",
            13: "topics by id",
            15: "a broker tells its replica id and epoch in a tagged field",
            16: "the answer may name the new leaders' addresses",
            17: "the directory id of a broker's replica",
            18: "a broker tells the high watermark that it knows",
        },
    ),
    ApiCard(
        ApiKey.LIST_OFFSETS,
        access=(Access(Operation.DESCRIBE, Resource.TOPIC),),
        notes={
            1: "one offset a partition, with its timestamp; -1 asks for the end, -2 for the start",
            2: "isolation level: with read_committed the end is the last stable offset",
            4: "leader epochs, the client's and that of the record",
            5: "OFFSET_NOT_AVAILABLE from a new leader; before, it says LEADER_NOT_AVAILABLE",
            7: "-3 asks for the record with the largest timestamp",
            8: "-4 asks for the start of what is on the broker's own disk: here the start",
            9: "-5 asks for the end of what is in tiered storage: there is none, so -1 is answered",
            10: "a time limit for reading from tiered storage, which is not needed here",
            11: "-6 asks for the first record that is not in tiered storage: unknown, as for -5",
        },
    ),
    ApiCard(
        ApiKey.OFFSET_FOR_LEADER_EPOCH,
        access=(
            Access(Operation.DESCRIBE, Resource.TOPIC, "as a consumer"),
            Access(Operation.CLUSTER_ACTION, Resource.CLUSTER, "as a follower"),
        ),
        notes={
            2: "the client's current leader epoch, which is checked against the broker's",
            3: "replica id; -1 for a consumer",
        },
    ),
    ApiCard(
        ApiKey.DELETE_RECORDS,
        access=(Access(Operation.DELETE, Resource.TOPIC),),
        notes={0: "an offset for each partition; -1 means the high watermark"},
    ),
    ApiCard(ApiKey.DESCRIBE_PRODUCERS, access=(Access(Operation.READ, Resource.TOPIC),)),
    ApiCard(
        ApiKey.DESCRIBE_DELAYED,
        access=(Access(Operation.READ, Resource.TOPIC),),
        notes={1: "lists go on where another ended; how many DeleteRecords took"},
    ),
    ApiCard(ApiKey.ALTER_DELAYED, access=(Access(Operation.WRITE, Resource.TOPIC),)),
    ApiCard(ApiKey.DESCRIBE_LOG_CHECKSUMS, access=(Access(Operation.DESCRIBE, Resource.CLUSTER),)),
)
