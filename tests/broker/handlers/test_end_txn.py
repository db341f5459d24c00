"""EndTxn: the outcome is decided, reaches the partitions, and the next transaction may begin."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

from headwater.base.errors import ErrorCode
from tests.support.brokers.handler_broker import HandlerBroker, run_with_broker
from tests.support.values.transaction_requests import SETTINGS, Producer, add, end, init, state_of


async def reaches(broker: HandlerBroker, producer: Producer, state: str) -> None:
    """Return when a transaction is in this state."""
    async with asyncio.timeout(10):
        while await state_of(broker, producer) != state:
            await asyncio.sleep(0.001)


def test_every_version_ends_a_transaction(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await broker.create_topic("orders", partitions=2)
        for version in range(6):
            producer = await init(broker, f"producer-{version}")
            add_version = 5 if version == 5 else 3
            await add(broker, producer, {"orders": [0, 1]}, version=add_version)
            answer = await end(broker, producer, commit=version % 2 == 0, version=version)
            assert answer.error_code == ErrorCode.NONE
            if version == 5:
                assert answer.producer_id == producer.producer_id
                assert answer.producer_epoch == producer.epoch + 1
            complete = "CompleteCommit" if version % 2 == 0 else "CompleteAbort"
            await reaches(broker, producer, complete)

    run_with_broker(tmp_path, scenario, SETTINGS)


def test_errors_of_each_version(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        producer = await init(broker)
        await init(broker)
        for version in range(6):
            fenced = ErrorCode.INVALID_PRODUCER_EPOCH if version < 2 else ErrorCode.PRODUCER_FENCED
            assert (await end(broker, producer, version=version)).error_code == fenced
            invalid = await end(broker, producer.at(1), version=version)
            assert invalid.error_code == ErrorCode.INVALID_TXN_STATE
            assert (invalid.producer_id, invalid.producer_epoch) == (-1, -1)

    run_with_broker(tmp_path, scenario, SETTINGS)


def test_when_epochs_run_out_the_answer_brings_a_new_producer_id(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        producer = await init(broker)
        shard = next(
            shard
            for shard in broker.context.transactions.shards()
            if shard.transactions.find("payments") is not None
        )
        metadata = shard.transactions.get("payments")
        last = replace(metadata, producer=metadata.producer._replace(producer_epoch=32766))
        shard.transactions.put(last)
        answer = await end(broker, producer.at(32766), commit=False)
        assert answer.error_code == ErrorCode.NONE
        assert answer.producer_id != producer.producer_id
        assert answer.producer_epoch == 0

    run_with_broker(tmp_path, scenario, SETTINGS)
