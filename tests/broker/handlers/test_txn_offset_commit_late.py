"""TxnOffsetCommit whose transaction ends while its coordinator is asked."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import pytest

from headwater.base.errors import ErrorCode
from headwater.base.ids import TopicPartition
from headwater.broker.topics.coordinator_topics import OFFSETS_TOPIC, CoordinatorKind
from headwater.broker.transactions.partitions import TransactionPartitions, Verdicts
from headwater.coordinator.outcome import ProducerIdentity
from headwater.storage.producers.transaction_verification import Question
from headwater.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)
from headwater.wire.messages.write_txn_markers import WriteTxnMarkersResponse
from tests.support.brokers.handler_broker import HandlerBroker, run_with_broker
from tests.support.fakes.peers.broker import until
from tests.support.traffic.transactional_client import marker_codes, marker_request


class _SlowCoordinator:
    """Agrees to everything, when the test lets it."""

    def __init__(self, broker: HandlerBroker) -> None:
        self.asked = 0
        self.gate = asyncio.Event()
        self.is_asked_again = False
        broker.context.transaction_partitions = cast(TransactionPartitions, self)

    async def ensure(
        self,
        _: str,
        __: ProducerIdentity,
        partitions: Sequence[TopicPartition],
        *,
        add: bool,
        questions: Sequence[Question],
    ) -> Verdicts:
        self.asked += 1
        await self.gate.wait()
        if self.is_asked_again:
            for question in questions:
                question.renew()
        return dict.fromkeys(partitions)


def _request() -> TxnOffsetCommitRequest:
    partition = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=9)
    return TxnOffsetCommitRequest(
        transactional_id="tx",
        group_id="g",
        producer_id=7,
        producer_epoch=2,
        topics=[TxnOffsetCommitRequestTopic(name="orders", partitions=[partition])],
    )


async def _commit(broker: HandlerBroker, version: int) -> int:
    response = await broker.ask(_request(), TxnOffsetCommitResponse, version=version)
    code: int = response.topics[0].partitions[0].error_code
    return code


async def _prepare(broker: HandlerBroker) -> tuple[str, int]:
    await broker.create_topic("orders")
    await broker.context.coordinator_topics.ensure(CoordinatorKind.GROUP)
    await broker.context.groups.loaded()
    return OFFSETS_TOPIC, broker.context.groups.partition_of("g")


@pytest.mark.parametrize("version", [3, 5])
def test_late_offsets_do_not_begin_a_transaction_that_nobody_ends(
    tmp_path: Path, version: int
) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        broker.become_broker()
        home = await _prepare(broker)
        coordinator = _SlowCoordinator(broker)
        commit = asyncio.ensure_future(_commit(broker, version))
        await until(lambda: coordinator.asked == 1)
        markers = marker_request(7, 2, home, commit=False)
        answer = await broker.ask(markers, WriteTxnMarkersResponse)
        assert marker_codes(answer) == [ErrorCode.NONE]
        coordinator.gate.set()
        assert await commit == ErrorCode.INVALID_TXN_STATE
        partition = broker.context.partitions.get(*home)
        assert partition.last_stable_offset == partition.log_end_offset == 1
        assert await _commit(broker, version) == ErrorCode.NONE
        assert partition.last_stable_offset == 1

    run_with_broker(tmp_path, scenario, {"offsets.topic.num.partitions": "3"})


def test_the_end_of_the_last_transaction_does_not_count_against_the_next(tmp_path: Path) -> None:
    """The coordinator makes the next one wait until that is written, and is asked again then."""

    async def scenario(broker: HandlerBroker) -> None:
        broker.become_broker()
        home = await _prepare(broker)
        coordinator = _SlowCoordinator(broker)
        commit = asyncio.ensure_future(_commit(broker, 5))
        await until(lambda: coordinator.asked == 1)
        await broker.ask(marker_request(7, 2, home), WriteTxnMarkersResponse)
        coordinator.is_asked_again = True
        coordinator.gate.set()
        assert await commit == ErrorCode.NONE

    run_with_broker(tmp_path, scenario, {"offsets.topic.num.partitions": "3"})


def test_two_commits_at_once_are_both_written(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await _prepare(broker)
        coordinator = _SlowCoordinator(broker)
        commits = [asyncio.ensure_future(_commit(broker, 5)) for _ in range(2)]
        await until(lambda: coordinator.asked == 2)
        coordinator.gate.set()
        assert [await each for each in commits] == [ErrorCode.NONE, ErrorCode.NONE]

    run_with_broker(tmp_path, scenario, {"offsets.topic.num.partitions": "3"})


def test_older_clients_are_not_verified_where_that_is_turned_off(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await _prepare(broker)
        coordinator = _SlowCoordinator(broker)
        assert await _commit(broker, 4) == ErrorCode.NONE
        assert coordinator.asked == 0

    settings = {
        "offsets.topic.num.partitions": "3",
        "transaction.partition.verification.enable": "false",
    }
    run_with_broker(tmp_path, scenario, settings)
