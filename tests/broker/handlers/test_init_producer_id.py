"""InitProducerId: an id for each idempotent producer, never the same twice."""

from pathlib import Path

import pytest

from headwater.base.errors import ErrorCode
from headwater.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from tests.support.handler_broker import HandlerBroker, run_with_broker


async def ask(
    broker: HandlerBroker,
    version: int = 6,
    *,
    transactional_id: str | None = None,
    producer_id: int = -1,
    producer_epoch: int = -1,
) -> tuple[int, int, int]:
    request = InitProducerIdRequest(
        transactional_id=transactional_id,
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


def test_what_is_not_served(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        for version in range(7):
            no_coordinator = (ErrorCode.COORDINATOR_NOT_AVAILABLE, -1, -1)
            assert await ask(broker, version, transactional_id="payments") == no_coordinator
            refused = (ErrorCode.INVALID_REQUEST, -1, -1)
            assert await ask(broker, version, transactional_id="") == refused
        assert await ask(broker, producer_id=5) == refused
        assert await ask(broker, producer_epoch=5) == refused

    run_with_broker(tmp_path, scenario)
