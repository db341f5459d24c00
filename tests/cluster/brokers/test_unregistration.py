"""What a controller forgets of a broker that was stopped for good, and what it does not."""

from __future__ import annotations

from headwater.base.errors import ErrorCode, KafkaError
from headwater.cluster.brokers.unregistration import config_resource
from tests.support.async_tests import run_async
from tests.support.models.broker_crowd import BrokerCrowd, describe, fresh_image

_MARK = "/brokers/unclean/3"


async def _unregister(crowd: BrokerCrowd, broker_id: int) -> ErrorCode:
    try:
        await crowd.seat.controller.unregister_broker(broker_id)
    except KafkaError as error:
        return error.code
    return ErrorCode.NONE


@run_async
async def test_settings_and_marks_of_a_broker_that_is_gone_are_removed() -> None:
    crowd = await BrokerCrowd.of([1, 2, 3])
    settings = config_resource(3)
    await crowd.seat.controller.set_configs(settings, {"log.retention.ms": "5"})
    assert await _unregister(crowd, 3) is ErrorCode.INVALID_REQUEST
    assert settings in crowd.image.configs
    await crowd.fail(3)
    await crowd.settle()
    await crowd.observer.create(_MARK, b"unclean")
    assert await _unregister(crowd, 3) is ErrorCode.NONE
    assert settings not in crowd.image.configs
    assert await crowd.observer.children("/config/brokers") == []
    assert await crowd.observer.children("/brokers/unclean") == []
    assert describe(crowd.image) == describe(await fresh_image(crowd))
    assert await _unregister(crowd, 3) is ErrorCode.BROKER_ID_NOT_REGISTERED
    await crowd.close()


@run_async
async def test_who_was_never_there_is_not_registered() -> None:
    crowd = await BrokerCrowd.of([1, 2])
    for broker_id in (7, -1):
        assert await _unregister(crowd, broker_id) is ErrorCode.BROKER_ID_NOT_REGISTERED
    await crowd.close()


@run_async
async def test_the_mark_of_a_broker_with_replicas_stays() -> None:
    """If it comes back, it may still not lead what it holds."""
    crowd = await BrokerCrowd.of([1, 2, 3])
    await crowd.create("t", (3, 1))
    await crowd.fail(3)
    await crowd.settle()
    await crowd.observer.create(_MARK, b"unclean")
    before = crowd.partition()
    assert await _unregister(crowd, 3) is ErrorCode.NONE
    assert await crowd.observer.children("/brokers/unclean") == ["3"]
    assert crowd.partition() == before
    await crowd.close()
