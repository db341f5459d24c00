"""InitProducerId: an id for each idempotent producer, an epoch for each transactional one."""

from pathlib import Path

import pytest

from headwater.base.errors import ErrorCode
from headwater.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from tests.support.brokers.handler_broker import HandlerBroker, run_with_broker
from tests.support.values.transaction_requests import SETTINGS, add, end, init


async def ask(
    broker: HandlerBroker,
    version: int = 6,
    *,
    transactional_id: str | None = None,
    producer_id: int = -1,
    producer_epoch: int = -1,
    timeout_ms: int = 60_000,
) -> tuple[int, int, int]:
    request = InitProducerIdRequest(
        transactional_id=transactional_id,
        transaction_timeout_ms=timeout_ms,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
    )
    answer = await broker.ask(request, InitProducerIdResponse, version=version)
    return answer.error_code, answer.producer_id, answer.producer_epoch


def test_every_producer_gets_a_new_id_also_after_a_restart(tmp_path: Path) -> None:
    ids: list[int] = []

    async def scenario(broker: HandlerBroker) -> None:
        for version in range(7):
            code, producer_id, epoch = await ask(broker, version)
            assert (code, epoch) == (ErrorCode.NONE, 0)
            ids.append(producer_id)

    run_with_broker(tmp_path, scenario)
    run_with_broker(tmp_path, scenario)
    assert len(set(ids)) == 14
    assert min(ids) >= 0


@pytest.mark.parametrize("version", [3, 4, 5, 6])
def test_a_producer_that_recovers_gets_another_id(tmp_path: Path, version: int) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        _, first, _ = await ask(broker, version)
        code, second, epoch = await ask(broker, version, producer_id=first, producer_epoch=3)
        assert (code, epoch) == (ErrorCode.NONE, 0)
        assert second != first

    run_with_broker(tmp_path, scenario)


def test_what_makes_no_sense_is_refused(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        refused = (ErrorCode.INVALID_REQUEST, -1, -1)
        for version in range(7):
            assert await ask(broker, version, transactional_id="") == refused
        assert await ask(broker, producer_id=5) == refused
        assert await ask(broker, producer_epoch=5) == refused

    run_with_broker(tmp_path, scenario)


def test_a_transactional_producer_keeps_its_id_and_gets_the_next_epoch(tmp_path: Path) -> None:
    ids: set[int] = set()
    epochs: list[int] = []

    async def scenario(broker: HandlerBroker) -> None:
        await broker.context.transactions.loaded()
        for version in range(7):
            code, producer_id, epoch = await ask(broker, version, transactional_id="payments")
            assert code == ErrorCode.NONE
            ids.add(producer_id)
            epochs.append(epoch)

    run_with_broker(tmp_path, scenario, SETTINGS)
    run_with_broker(tmp_path, scenario, SETTINGS)
    assert len(ids) == 1
    assert epochs == list(range(14))


def test_old_versions_do_not_know_of_fencing(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        producer = await init(broker)
        await init(broker)
        for version in range(3, 7):
            code, producer_id, epoch = await ask(
                broker,
                version,
                transactional_id="payments",
                producer_id=producer.producer_id,
                producer_epoch=producer.epoch,
            )
            fenced = ErrorCode.INVALID_PRODUCER_EPOCH if version < 4 else ErrorCode.PRODUCER_FENCED
            assert (code, producer_id, epoch) == (fenced, -1, -1)

    run_with_broker(tmp_path, scenario, SETTINGS)


def test_a_timeout_that_is_too_long_is_refused(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        code, _, _ = await ask(broker, transactional_id="payments", timeout_ms=900_001)
        assert code == ErrorCode.INVALID_TRANSACTION_TIMEOUT

    run_with_broker(tmp_path, scenario, SETTINGS)


def test_two_phase_commit_can_be_turned_off(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        request = InitProducerIdRequest(
            transactional_id="payments", transaction_timeout_ms=1000, enable2_pc=True
        )
        answer = await broker.ask(request, InitProducerIdResponse)
        assert answer.error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED

    settings = {**SETTINGS, "transaction.two.phase.commit.enable": "false"}
    run_with_broker(tmp_path, scenario, settings)


def test_a_prepared_transaction_is_kept(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await broker.create_topic("orders")
        old = await init(broker, two_phase=True)
        await add(broker, old, {"orders": [0]}, version=5)
        request = InitProducerIdRequest(
            transactional_id="payments",
            transaction_timeout_ms=1000,
            enable2_pc=True,
            keep_prepared_txn=True,
        )
        answer = await broker.ask(request, InitProducerIdResponse)
        assert answer.error_code == ErrorCode.NONE
        assert (answer.producer_id, answer.producer_epoch) == (old.producer_id, 1)
        assert answer.ongoing_txn_producer_id == old.producer_id
        assert answer.ongoing_txn_producer_epoch == 0
        ended = await end(broker, old.at(1))
        assert (ended.error_code, ended.producer_epoch) == (ErrorCode.NONE, 2)

    run_with_broker(tmp_path, scenario, SETTINGS)
