"""TxnOffsetCommit, with a transaction coordinator that answers as the test wants."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import pytest

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import TopicPartition
from headwater.broker.topics.coordinator_topics import CoordinatorKind
from headwater.broker.transactions.partitions import TransactionPartitions
from headwater.coordinator.outcome import ProducerIdentity
from headwater.storage.producers.transaction_verification import Question
from headwater.wire.messages.add_offsets_to_txn import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
)
from headwater.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from headwater.wire.messages.end_txn import EndTxnRequest, EndTxnResponse
from headwater.wire.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from headwater.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)
from headwater.wire.records import ControlType
from tests.support.brokers.handler_broker import HandlerBroker, run_with_broker
from tests.support.values.offset_requests import (
    COORDINATOR_SETTINGS,
    committed_offsets,
    fetch_groups,
)

PRODUCER = ProducerIdentity(7, 2)


class FakeTransactions:
    """Gives the same answer for all partitions, and remembers what it was asked."""

    def __init__(self, code: ErrorCode = ErrorCode.NONE) -> None:
        self.code = code
        self.asked: list[tuple[str, ProducerIdentity, list[TopicPartition], bool]] = []

    async def ensure(
        self,
        transactional_id: str,
        producer: ProducerIdentity,
        partitions: Sequence[TopicPartition],
        *,
        add: bool,
        questions: Sequence[Question],
    ) -> dict[TopicPartition, KafkaError | None]:
        del questions
        self.asked.append((transactional_id, producer, list(partitions), add))
        return dict.fromkeys(partitions, KafkaError(self.code) if self.code else None)

    @classmethod
    def on(cls, broker: HandlerBroker, code: ErrorCode = ErrorCode.NONE) -> FakeTransactions:
        scripted = cls(code)
        broker.context.transaction_partitions = cast(TransactionPartitions, scripted)
        return scripted


def commit_request(group_id: str = "g", **fields: object) -> TxnOffsetCommitRequest:
    """Offset 9 of orders-0, and one of a partition that does not exist."""
    partitions = [
        TxnOffsetCommitRequestPartition(partition_index=number, committed_offset=9)
        for number in (0, 1)
    ]
    request = TxnOffsetCommitRequest(
        transactional_id="tx",
        group_id=group_id,
        producer_id=PRODUCER.producer_id,
        producer_epoch=PRODUCER.producer_epoch,
        topics=[TxnOffsetCommitRequestTopic(name="orders", partitions=partitions)],
    )
    for name, value in fields.items():
        setattr(request, name, value)
    return request


async def codes(broker: HandlerBroker, request: TxnOffsetCommitRequest, version: int) -> list[int]:
    if version >= 6:
        request.topics[0].topic_id = broker.context.image.topics["orders"].topic_id
    response = await broker.ask(request, TxnOffsetCommitResponse, version=version)
    [topic] = response.topics
    assert topic.name == ("orders" if version < 6 else "")
    assert topic.topic_id == request.topics[0].topic_id
    assert [each.partition_index for each in topic.partitions] == [0, 1]
    return [each.error_code for each in topic.partitions]


@pytest.mark.parametrize("version", range(7))
def test_offsets_are_part_of_the_transaction(tmp_path: Path, version: int) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await broker.create_topic("orders")
        await broker.context.coordinator_topics.ensure(CoordinatorKind.GROUP)
        transactions = FakeTransactions.on(broker)
        groups = broker.context.groups
        assert await codes(broker, commit_request(), version) == [
            0,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ]
        number = groups.partition_of("g")
        partition = TopicPartition("__consumer_offsets", number)
        assert transactions.asked == [("tx", PRODUCER, [partition], version >= 5)]
        assert await committed_offsets(broker, "g") == {}
        await groups.end_transaction(number, PRODUCER, ControlType.COMMIT, 0)
        assert await committed_offsets(broker, "g") == {("orders", 0): 9}

    run_with_broker(tmp_path, scenario, COORDINATOR_SETTINGS)


@pytest.mark.parametrize(
    ("code", "version", "told"),
    [
        (ErrorCode.TRANSACTION_ABORTABLE, 5, ErrorCode.TRANSACTION_ABORTABLE),
        (ErrorCode.TRANSACTION_ABORTABLE, 3, ErrorCode.INVALID_TXN_STATE),
        (ErrorCode.INVALID_PRODUCER_EPOCH, 4, ErrorCode.INVALID_PRODUCER_EPOCH),
        (ErrorCode.CONCURRENT_TRANSACTIONS, 5, ErrorCode.CONCURRENT_TRANSACTIONS),
        (ErrorCode.NETWORK_EXCEPTION, 5, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
        (ErrorCode.NETWORK_EXCEPTION, 1, ErrorCode.COORDINATOR_NOT_AVAILABLE),
    ],
)
def test_nothing_is_written_outside_of_a_transaction(
    tmp_path: Path, code: ErrorCode, version: int, told: ErrorCode
) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await broker.create_topic("orders")
        await broker.context.coordinator_topics.ensure(CoordinatorKind.GROUP)
        FakeTransactions.on(broker, code)
        assert await codes(broker, commit_request(), version) == [
            told,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ]
        await broker.context.groups.end_transaction(
            broker.context.groups.partition_of("g"), PRODUCER, ControlType.COMMIT, 0
        )
        assert await committed_offsets(broker, "g") == {}

    run_with_broker(tmp_path, scenario, COORDINATOR_SETTINGS)


def test_members_that_are_none(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await broker.create_topic("orders")
        await broker.context.coordinator_topics.ensure(CoordinatorKind.GROUP)
        transactions = FakeTransactions.on(broker)
        request = commit_request(generation_id_or_member_epoch=4, member_id="somebody")
        assert (await codes(broker, request, 5))[0] == ErrorCode.ILLEGAL_GENERATION
        assert (await codes(broker, request, 6))[0] == ErrorCode.GROUP_ID_NOT_FOUND
        transactions.asked.clear()
        assert (await codes(broker, commit_request(""), 5))[0] == ErrorCode.INVALID_GROUP_ID
        assert transactions.asked == []

    run_with_broker(tmp_path, scenario, COORDINATOR_SETTINGS)


def test_topics_whose_id_nobody_knows(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await broker.create_topic("orders")
        transactions = FakeTransactions.on(broker)
        request = commit_request()
        request.topics[0].topic_id = uuid.uuid4()
        response = await broker.ask(request, TxnOffsetCommitResponse, version=6)
        [topic] = response.topics
        assert topic.topic_id == request.topics[0].topic_id
        assert [each.error_code for each in topic.partitions] == [ErrorCode.UNKNOWN_TOPIC_ID] * 2
        assert transactions.asked == []

    run_with_broker(tmp_path, scenario, COORDINATOR_SETTINGS)


def test_a_member_that_is_behind(tmp_path: Path) -> None:
    """A producer that commits for a consumer whose epoch has grown meanwhile."""

    async def scenario(broker: HandlerBroker) -> None:
        await broker.create_topic("orders")
        await broker.context.coordinator_topics.ensure(CoordinatorKind.GROUP)
        FakeTransactions.on(broker)
        joining = ConsumerGroupHeartbeatRequest(
            group_id="g",
            member_id="member",
            member_epoch=0,
            rebalance_timeout_ms=60_000,
            subscribed_topic_names=["orders"],
            topic_partitions=[],
        )
        joined = await broker.ask(joining, ConsumerGroupHeartbeatResponse)
        assert joined.error_code == 0
        epoch = joined.member_epoch
        request = commit_request(member_id="member", generation_id_or_member_epoch=epoch - 1)
        assert (await codes(broker, request, 5))[0] == ErrorCode.ILLEGAL_GENERATION
        assert (await codes(broker, request, 6))[0] == ErrorCode.STALE_MEMBER_EPOCH
        request.generation_id_or_member_epoch = epoch
        assert (await codes(broker, request, 6))[0] == 0

    run_with_broker(tmp_path, scenario, COORDINATOR_SETTINGS)


def test_a_commit_that_comes_after_the_end_is_refused(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await broker.create_topic("orders")
        await broker.context.coordinator_topics.ensure(CoordinatorKind.GROUP)
        FakeTransactions.on(broker)
        groups = broker.context.groups
        assert (await codes(broker, commit_request(), 5))[0] == 0
        next_epoch = ProducerIdentity(PRODUCER.producer_id, PRODUCER.producer_epoch + 1)
        await groups.end_transaction(groups.partition_of("g"), next_epoch, ControlType.ABORT, 0)
        late = await codes(broker, commit_request(), 5)
        assert late[0] == ErrorCode.INVALID_PRODUCER_EPOCH
        assert await committed_offsets(broker, "g") == {}

    run_with_broker(tmp_path, scenario, COORDINATOR_SETTINGS)


@pytest.mark.parametrize("version", [3, 5, 6])
@pytest.mark.parametrize("is_committed", [True, False])
def test_a_whole_transaction(tmp_path: Path, version: int, is_committed: bool) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await broker.create_topic("orders")
        for kind in CoordinatorKind:
            await broker.context.coordinator_topics.ensure(kind)
        producer = await broker.ask(
            InitProducerIdRequest(transactional_id="tx", transaction_timeout_ms=60_000),
            InitProducerIdResponse,
        )
        identity = {
            "producer_id": producer.producer_id,
            "producer_epoch": producer.producer_epoch,
        }
        if version < 5:
            # Nothing is written before the transaction knows of the group.
            refused = await codes(broker, commit_request("g", **identity), version)
            assert refused[0] == ErrorCode.INVALID_TXN_STATE
            adding = AddOffsetsToTxnRequest(transactional_id="tx", group_id="g", **identity)
            added = await broker.ask(adding, AddOffsetsToTxnResponse, version=3)
            assert added.error_code == 0
        assert (await codes(broker, commit_request("g", **identity), version))[0] == 0
        assert await committed_offsets(broker, "g") == {}
        end = EndTxnRequest(transactional_id="tx", committed=is_committed, **identity)
        ended = await broker.ask(end, EndTxnResponse, version=5 if version >= 5 else 3)
        assert ended.error_code == 0
        async with asyncio.timeout(10):
            while (await stable_code(broker)) == ErrorCode.UNSTABLE_OFFSET_COMMIT:
                await asyncio.sleep(0.01)
        expected = {("orders", 0): 9} if is_committed else {}
        assert await committed_offsets(broker, "g") == expected

    run_with_broker(tmp_path, scenario, COORDINATOR_SETTINGS)


async def stable_code(broker: HandlerBroker) -> int:
    """What is said of the group's offset to who wants no open transactions."""
    fetched = await fetch_groups(broker, {"g": [("orders", 0)]}, require_stable=True)
    return fetched.groups[0].topics[0].partitions[0].error_code
