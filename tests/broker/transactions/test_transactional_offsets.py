"""Offsets that are committed with a transaction, through a whole broker."""

import asyncio
from pathlib import Path

import pytest

from headwater.base.errors import ErrorCode
from headwater.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from headwater.wire.messages.find_coordinator import FindCoordinatorRequest
from headwater.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from headwater.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from tests.support.brokers.running_broker import RunningBroker, run_broker_scenario
from tests.support.traffic.transactional_client import TransactionalProducer, read_committed

_SETTINGS = {
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
}
_INPUT, _OUTPUT = ("input", 0), ("output", 0)


async def _commit_offset(producer: TransactionalProducer, offset: int) -> int:
    if producer.version == 1:
        for _ in range(1000):
            answer = await producer.channel.send(
                AddOffsetsToTxnRequest(
                    transactional_id=producer.transactional_id,
                    producer_id=producer.producer_id,
                    producer_epoch=producer.epoch,
                    group_id="copiers",
                ),
                version=3,
                timeout_s=10,
            )
            if answer.error_code != ErrorCode.CONCURRENT_TRANSACTIONS:
                break
            await asyncio.sleep(0.01)
        assert answer.error_code == 0
    partition = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
    request = TxnOffsetCommitRequest(
        transactional_id=producer.transactional_id,
        group_id="copiers",
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        topics=[TxnOffsetCommitRequestTopic(name="input", partitions=[partition])],
    )
    answer = await producer.channel.send(
        request, version=5 if producer.version == 2 else 3, timeout_s=10
    )
    code: int = answer.topics[0].partitions[0].error_code
    return code


async def _committed_offset(broker: RunningBroker, *, stable: bool) -> int | ErrorCode:
    group = OffsetFetchRequestGroup(
        group_id="copiers",
        topics=[OffsetFetchRequestTopics(name="input", partition_indexes=[0])],
    )
    request = OffsetFetchRequest(groups=[group], require_stable=stable)
    answer = (await broker.send(request, 8)).groups[0].topics[0].partitions[0]
    if answer.error_code:
        return ErrorCode.from_wire(answer.error_code)
    offset: int = answer.committed_offset
    return offset


async def _stable_offset(broker: RunningBroker) -> int | ErrorCode:
    for _ in range(1000):
        found = await _committed_offset(broker, stable=True)
        if found is not ErrorCode.UNSTABLE_OFFSET_COMMIT:
            return found
        await asyncio.sleep(0.01)
    raise AssertionError("the transaction does not end")


@pytest.mark.parametrize("version", [1, 2])
def test_offsets_appear_with_the_records_or_not_at_all(tmp_path: Path, version: int) -> None:
    async def scenario(broker: RunningBroker) -> None:
        await broker.create_topic("input")
        await broker.create_topic("output")
        await broker.send(FindCoordinatorRequest(key_type=0, coordinator_keys=["copiers"]), 4)
        producer = TransactionalProducer(await broker.connect(), "copy", version)
        await producer.init()
        expected_offset, expected = -1, []
        for number in range(1, 6):
            value = b"%d" % number
            codes = await producer.produce(_OUTPUT, values=[value], timestamp_ms=broker.now_ms)
            assert codes == [ErrorCode.NONE]
            assert await _commit_offset(producer, number) == 0
            assert await _committed_offset(broker, stable=False) == expected_offset
            assert await _committed_offset(broker, stable=True) is ErrorCode.UNSTABLE_OFFSET_COMMIT
            is_commit = number % 2 == 1
            assert await producer.end(commit=is_commit) is ErrorCode.NONE
            if is_commit:
                expected_offset = number
                expected.append(value)
            assert await _stable_offset(broker) == expected_offset
        for _ in range(1000):
            if await read_committed(broker.channel, _OUTPUT) == expected:
                break
            await asyncio.sleep(0.01)
        assert await read_committed(broker.channel, _OUTPUT) == expected
        await producer.channel.close()

    run_broker_scenario(tmp_path, scenario, _SETTINGS)


def test_a_group_that_was_not_added_to_the_transaction_is_refused(tmp_path: Path) -> None:
    async def scenario(broker: RunningBroker) -> None:
        await broker.create_topic("input")
        await broker.send(FindCoordinatorRequest(key_type=0, coordinator_keys=["copiers"]), 4)
        producer = TransactionalProducer(await broker.connect(), "copy", 1)
        await producer.init()
        assert await producer.add(_INPUT) == [ErrorCode.NONE]
        producer.version = 0  # Neither version adds anything then.
        assert await _commit_offset(producer, 1) == ErrorCode.INVALID_TXN_STATE
        assert await _committed_offset(broker, stable=True) == -1
        await producer.channel.close()

    run_broker_scenario(tmp_path, scenario, _SETTINGS)
