"""The requests of a transactional producer, said one by one on a `RawConnection`.

For what no client can be made to do: write with an epoch that is over, or end what never began.
"""

from __future__ import annotations

import time
from typing import NamedTuple

from headwater.base.errors import ErrorCode
from headwater.testing.broker_process import wait_until
from headwater.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from headwater.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from headwater.wire.messages.end_txn import EndTxnRequest, EndTxnResponse
from headwater.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from headwater.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from headwater.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from headwater.wire.records import Record, encode_batch
from tests.support.other_clients.groups.raw import NOT_YET
from tests.support.other_clients.raw import LATEST, RawConnection, produce_request

READ_COMMITTED = 1
#: The last version for one producer, and the only ones that a client sends.
ADD_VERSION = 3
#: The versions on both sides of what changed with transactions of version 2 (KIP-890).
END_VERSION_1, END_VERSION_2 = 4, 5
PRODUCE_VERSION_1, PRODUCE_VERSION_2 = 11, 12
OFFSETS_VERSION_1, OFFSETS_VERSION_2 = 4, 5


class Producer(NamedTuple):
    transactional_id: str
    producer_id: int
    epoch: int


def initialise(
    connection: RawConnection, transactional_id: str | None, *, timeout_ms: int = 60_000
) -> InitProducerIdResponse:
    request = InitProducerIdRequest(
        transactional_id=transactional_id, transaction_timeout_ms=timeout_ms
    )
    answer: InitProducerIdResponse = connection.ask(request, 4)
    return answer


def new_producer(
    connection: RawConnection, transactional_id: str, *, timeout_ms: int = 60_000
) -> Producer:
    """Initialise, again and again while what was open is being aborted, as clients do, or the
    coordinator is not ready yet."""
    answers: list[InitProducerIdResponse] = []

    def is_ready() -> bool:
        answers.append(initialise(connection, transactional_id, timeout_ms=timeout_ms))
        return answers[-1].error_code not in {ErrorCode.CONCURRENT_TRANSACTIONS, *NOT_YET}

    wait_until(is_ready, "the producer is ready")
    assert answers[-1].error_code == 0, answers[-1].error_code
    return Producer(transactional_id, answers[-1].producer_id, answers[-1].producer_epoch)


def add_partitions(connection: RawConnection, producer: Producer, *topics: str) -> list[int]:
    """Add partition 0 of each; what is said of each."""
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=producer.transactional_id,
        v3_and_below_producer_id=producer.producer_id,
        v3_and_below_producer_epoch=producer.epoch,
        v3_and_below_topics=[
            AddPartitionsToTxnTopic(name=topic, partitions=[0]) for topic in topics
        ],
    )
    results = connection.ask(request, ADD_VERSION).results_by_topic_v3_and_below
    codes = {each.name: each.results_by_partition[0].partition_error_code for each in results}
    return [codes[topic] for topic in topics]


def write(
    connection: RawConnection,
    producer: Producer,
    topic: str,
    value: bytes = b"value",
    *,
    sequence: int = 0,
    version: int = PRODUCE_VERSION_2,
    timestamp_ms: int | None = None,
) -> int:
    """Write one record in the producer's transaction; the error."""
    time_ms = int(time.time() * 1000) if timestamp_ms is None else timestamp_ms
    batch = encode_batch(
        [Record(0, time_ms, None, value)],
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        base_sequence=sequence,
        transactional=True,
    )
    request = produce_request(topic, batch)
    request.transactional_id = producer.transactional_id
    [written] = connection.ask(request, version).responses[0].partition_responses
    code: int = written.error_code
    return code


def end(
    connection: RawConnection, producer: Producer, *, commit: bool, version: int = END_VERSION_2
) -> EndTxnResponse:
    request = EndTxnRequest(
        transactional_id=producer.transactional_id,
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        committed=commit,
    )
    answer: EndTxnResponse = connection.ask(request, version)
    return answer


def add_offsets(connection: RawConnection, producer: Producer, group: str) -> int:
    request = AddOffsetsToTxnRequest(
        transactional_id=producer.transactional_id,
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        group_id=group,
    )
    code: int = connection.ask(request, 3).error_code
    return code


def commit_offset(
    connection: RawConnection,
    producer: Producer,
    group: str,
    topic: str,
    offset: int,
    generation: int = -1,
    member_id: str = "",
    *,
    instance_id: str | None = None,
    version: int = OFFSETS_VERSION_2,
) -> int:
    """Commit an offset of partition 0 in the producer's transaction; the error."""
    partition = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
    request = TxnOffsetCommitRequest(
        transactional_id=producer.transactional_id,
        group_id=group,
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        generation_id_or_member_epoch=generation,
        member_id=member_id,
        group_instance_id=instance_id,
        topics=[TxnOffsetCommitRequestTopic(name=topic, partitions=[partition])],
    )
    [answer] = connection.ask(request, version).topics
    code: int = answer.partitions[0].error_code
    return code


def stable_offset(connection: RawConnection, topic: str, partition: int = 0) -> int:
    """Up to where a reader of what is committed can see."""
    wanted = ListOffsetsPartition(partition_index=partition, timestamp=LATEST)
    request = ListOffsetsRequest(
        replica_id=-1,
        isolation_level=READ_COMMITTED,
        topics=[ListOffsetsTopic(name=topic, partitions=[wanted])],
    )
    [found] = connection.ask(request, 7).topics[0].partitions
    assert found.error_code == 0
    offset: int = found.offset
    return offset
