"""The topic of traces is made for clients that ask, and has the settings that it needs."""

from pathlib import Path

from headwater.base.errors import ErrorCode
from headwater.base.ids import TRACE_TOPIC
from headwater.broker.topics.auto_creation import create_missing
from headwater.cluster.image.image import is_brokers_own, is_internal
from headwater.wire.api_keys import ApiKey
from tests.support.brokers.handler_broker import HandlerBroker, run_with_broker


def test_it_is_internal_and_clients_write_to_it() -> None:
    assert is_internal(TRACE_TOPIC)
    assert not is_brokers_own(TRACE_TOPIC)


def test_it_is_made_when_somebody_asks_and_nothing_else_is(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        context = broker.request_context(ApiKey.METADATA)
        assert await create_missing(["orders", TRACE_TOPIC], context) == {}
        assert sorted(broker.context.image.topics) == [TRACE_TOPIC]
        topic = broker.context.image.topics[TRACE_TOPIC]
        assert len(topic.partitions) == 8
        values = broker.context.settings.topic_values(TRACE_TOPIC)
        assert values.texts("cleanup.policy") == ("delete",)
        assert values.integer("retention.ms") == 60_000
        assert values.number("trace.sample") == 0.0
        # Two may have asked at the same time.
        assert await create_missing([TRACE_TOPIC], context) == {}

    settings = {"auto.create.topics.enable": "false", "trace.retention.ms": "60000"}
    run_with_broker(tmp_path, scenario, settings=settings)


def test_it_waits_for_its_replicas(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        failures = await create_missing([TRACE_TOPIC], broker.request_context(ApiKey.METADATA))
        assert failures == {TRACE_TOPIC: ErrorCode.INVALID_REPLICATION_FACTOR}

    run_with_broker(tmp_path, scenario, settings={"trace.topic.replication.factor": "3"})
