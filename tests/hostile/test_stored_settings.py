"""Settings that were stored by whomever: none is obeyed that no broker could have been given."""

import asyncio
import json
import logging
import random
from collections.abc import Awaitable, Mapping
from pathlib import Path

import pytest

from headwater.base.errors import ErrorCode, KafkaError
from headwater.broker.settings.broker_settings import BrokerSettings
from headwater.net.peer_channel import PeerChannel
from headwater.wire.cluster_messages.set_configs import (
    ConfigEntry,
    SetConfigsRequest,
    SetConfigsResponse,
)
from headwater.wire.codec import MalformedMessageError, decode, encode
from headwater.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from headwater.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from tests.support.brokers.handler_broker import HandlerBroker, run_with_broker
from tests.support.brokers.metadata_stores import open_sqlite
from tests.support.brokers.running_broker import RunningBroker, run_broker_scenario
from tests.support.fakes.peers.config_image import FakeConfigImage
from tests.support.tiers import rounds

TOPIC, BROKER = 2, 4
DYNAMIC_BROKER = 2


async def set_configs(
    broker: HandlerBroker, kind: int, name: str, configs: Mapping[str, str], version: int = -1
) -> tuple[int, str | None]:
    entries = [ConfigEntry(name=each, value=text) for each, text in configs.items()]
    request = SetConfigsRequest(kind=kind, resource_name=name, version=version, entries=entries)
    answer = await broker.ask(request, SetConfigsResponse)
    return answer.error_code, answer.error_message


def refusals() -> list[tuple[dict[str, str], ErrorCode]]:
    invalid, unknown = ErrorCode.INVALID_REQUEST, ErrorCode.INVALID_CONFIG
    return [
        ({"create.topic.policy.class.name": "os.path.join"}, invalid),
        ({"listeners": "PLAINTEXT://:1"}, invalid),
        ({"log.dirs": "/"}, invalid),
        ({"port": "1"}, unknown),
        ({"num.io.threads": "0"}, unknown),
        ({"num.io.threads": "many"}, unknown),
        ({"max.connections": "0"}, unknown),
        ({"max.connections.per.ip": "0"}, unknown),
        ({"max.connections.per.ip.overrides": "nonsense"}, unknown),
        ({"max.connections.per.ip.overrides": "a:" + "9" * 5000}, unknown),
        ({"num.io.threads": "9", "log.dirs": "/"}, invalid),
    ]


def test_the_controller_stores_only_what_brokers_can_be_given(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        for name in ("", "0", "7"):
            for configs, code in refusals():
                found, message = await set_configs(broker, BROKER, name, configs)
                assert found == code, configs
                assert message is not None and message.endswith((".", "?"))
        for name in ("zero", "00", "-1", "99999999999", "../0"):
            found, _ = await set_configs(broker, BROKER, name, {"num.io.threads": "9"})
            assert found == ErrorCode.INVALID_REQUEST, name
        assert dict(broker.context.image.configs) == {}
        for name in ("", "0", "7"):
            assert await set_configs(broker, BROKER, name, {"num.io.threads": "9"}) == (0, None)

    run_with_broker(tmp_path, scenario)


# -- what is stored all the same -----------------------------------------------------------------


def store_configs(directory: Path, path: str, configs: Mapping[str, str]) -> None:
    async def write() -> None:
        store = await open_sqlite(directory)
        session = store.connect()
        data = json.dumps({"version": 1, "config": dict(configs)}).encode()
        if await session.exists(path) is None:
            await session.create(path, data)
        else:
            await session.set(path, data)
        await store.close()

    asyncio.run(write())


async def described(broker: HandlerBroker, kind: int, name: str) -> dict[str, tuple[object, int]]:
    resource = DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=None
    )
    answer = await broker.ask(DescribeConfigsRequest(resources=[resource]), DescribeConfigsResponse)
    [result] = answer.results
    return {entry.name: (entry.value, entry.config_source) for entry in result.configs}


BAD_BROKER_CONFIGS = {
    "create.topic.policy.class.name": "headwater.no_such_module.Policy",
    "listeners": "PLAINTEXT://127.0.0.1:1",
    "metrics.listen": "nonsense",
    "node.id": "77",
    "of.tomorrow": "1",
    "num.io.threads": "-5",
    "max.connections": "0",
    "max.connections.per.ip.overrides": "nonsense",
}


@pytest.mark.parametrize("node", ["0", "<default>"])
def test_a_broker_starts_without_stored_settings_that_it_cannot_obey(
    tmp_path: Path, node: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def nothing(broker: HandlerBroker) -> None:
        pass

    async def scenario(broker: HandlerBroker) -> None:
        settings = broker.context.settings
        assert settings.integer("background.threads") == 7
        assert settings.integer("num.io.threads") == 8
        assert settings.optional_text("create.topic.policy.class.name") is None
        await broker.create_topic("orders")
        shown = await described(broker, BROKER, "0")
        assert shown["background.threads"][0] == "7"
        for name in BAD_BROKER_CONFIGS.keys() & shown.keys():
            assert shown[name][0] != BAD_BROKER_CONFIGS[name], name
        own = list(await described(broker, BROKER, ""))
        assert own == (["background.threads"] if node == "<default>" else [])
        # They can be deleted one by one: those that are left are in nobody's way.
        for name in BAD_BROKER_CONFIGS:
            removal = AlterableConfig(name=name, config_operation=1, value=None)
            resource = AlterConfigsResource(
                resource_type=BROKER,
                resource_name="" if node == "<default>" else node,
                configs=[removal],
            )
            answer = await broker.ask(
                IncrementalAlterConfigsRequest(resources=[resource]),
                IncrementalAlterConfigsResponse,
            )
            assert answer.responses[0].error_code == 0
        [left] = [
            config.configs for config in broker.context.image.configs.values() if config.configs
        ]
        assert left == {"background.threads": "7"}

    run_with_broker(tmp_path, nothing)
    store_configs(
        tmp_path, f"/config/brokers/{node}", BAD_BROKER_CONFIGS | {"background.threads": "7"}
    )
    caplog.clear()
    run_with_broker(tmp_path, scenario)
    lines = [
        record.getMessage() for record in caplog.records if "is ignored" in record.getMessage()
    ]
    for name in BAD_BROKER_CONFIGS:
        [line] = [each for each in lines if each.startswith(f"The setting {name} ")]
        assert f"/config/brokers/{node}" in line
    assert [record for record in caplog.records if record.exc_info] == []


def test_a_topic_works_without_stored_settings_that_it_cannot_have(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    bad = {
        "retention.ms": "soon",
        "of.tomorrow": "1",
        "remote.storage.enable": "true",
        "min.insync.replicas": "0",
    }

    async def make(broker: HandlerBroker) -> None:
        await broker.create_topic("orders", configs={"segment.ms": "5000"})

    async def scenario(broker: HandlerBroker) -> None:
        broker.append("orders", 1, 2, 3)
        shown = await described(broker, TOPIC, "orders")
        assert shown["segment.ms"] == ("6000", 1)
        assert shown["retention.ms"][0] == "604800000"
        assert shown["min.insync.replicas"][0] == "1"
        assert shown["remote.storage.enable"][0] == "false"
        # Whatever else changes, nothing is said twice.
        assert (await set_configs(broker, BROKER, "", {"num.io.threads": "9"}))[0] == 0
        assert broker.context.settings.topic_config("orders").segment_ms == 6000

    run_with_broker(tmp_path, make)
    store_configs(tmp_path, "/config/topics/orders", bad | {"segment.ms": "6000"})
    caplog.clear()
    with caplog.at_level(logging.WARNING):
        run_with_broker(tmp_path, scenario)
    for name in bad:
        lines = [each for each in caplog.messages if each.startswith(f"The setting {name} ")]
        assert len(lines) == 1 and "/config/topics/orders" in lines[0]


def test_what_was_set_right_and_is_wrong_again_is_told_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    settings = BrokerSettings.from_texts({"broker.id": "0"})
    for text in ("many", "9", "many", "too many"):
        settings.take_image(FakeConfigImage(brokers={0: {"num.io.threads": text}}))
    assert len(caplog.messages) == 3


# -- messages at random --------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(rounds(2, 20)))
def test_messages_that_were_changed_at_random_do_no_harm(
    tmp_path: Path, seed: int, caplog: pytest.LogCaptureFixture
) -> None:
    source = random.Random(seed)
    names = ("", "0", "1", "orders", "../x", "00", "x" * 300)
    settings = ("num.io.threads", "log.dirs", "retention.ms", "of.tomorrow", "max.connections", "")
    texts = ("", "1", "0", "-1", "many", "9" * 400, "5\n", "\0", "1000")

    def request(broker: HandlerBroker) -> SetConfigsRequest | None:
        drawn = SetConfigsRequest(
            kind=source.choice((TOPIC, TOPIC, BROKER, BROKER, 0, 127, -128)),
            resource_name=source.choice(names),
            version=source.choice((-1, -1, 0, 1, 2**31 - 1)),
            entries=[
                ConfigEntry(name=source.choice(settings), value=source.choice(texts))
                for _ in range(source.choice((0, 1, 1, 2)))
            ],
        )
        data = bytearray(encode(drawn, 0))
        if source.random() < 0.3:
            data[source.randrange(len(data))] = source.randrange(256)
        try:
            return decode(SetConfigsRequest, bytes(data), 0)[0]
        except MalformedMessageError:
            return None

    async def scenario(broker: HandlerBroker) -> None:
        await broker.create_topic("orders")
        for _ in range(rounds(200, 1000)):
            changed = request(broker)
            if changed is not None:
                await refused_or_done(broker.ask(changed, SetConfigsResponse))
        await broker.create_topic("others")

    run_with_broker(tmp_path, scenario)
    # It starts again with whatever was stored.
    run_with_broker(tmp_path, lambda broker: broker.create_topic("more"))
    assert [record for record in caplog.records if record.exc_info] == []


async def refused_or_done(asked: Awaitable[object]) -> None:
    try:
        await asked
    except KafkaError as error:
        assert error.code != ErrorCode.UNKNOWN_SERVER_ERROR


# -- who shuts himself out -----------------------------------------------------------------------


def test_a_limit_that_was_set_too_low_can_be_set_right(tmp_path: Path) -> None:
    """Every place is taken, and somebody on the broker's machine still gets in."""

    async def alter(channel: PeerChannel, text: str) -> int:
        change = AlterableConfig(name="max.connections", config_operation=0, value=text)
        resource = AlterConfigsResource(resource_type=BROKER, resource_name="", configs=[change])
        answer = await channel.send(
            IncrementalAlterConfigsRequest(resources=[resource]), timeout_s=30
        )
        return int(answer.responses[0].error_code)

    async def scenario(broker: RunningBroker) -> None:
        _, port = broker.server.addresses[0].rsplit(":", 1)
        assert await alter(broker.channel, "0") == ErrorCode.INVALID_REQUEST
        assert await alter(broker.channel, "1") == 0
        operator = await PeerChannel.connect("127.0.0.1", int(port), timeout_s=30)
        assert await alter(operator, "100") == 0
        await operator.close()
        assert broker.server.settings.integer("max.connections") == 100

    run_broker_scenario(tmp_path, scenario)
