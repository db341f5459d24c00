"""The controller on its store: what it writes there, tells its subscribers and keeps."""

import asyncio
import json
from pathlib import Path

import pytest

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.settings import SettingError
from headwater.cluster.controller.config_changes import ConfigConflictError
from headwater.cluster.image.image import NO_CONFIGS, ClusterImage, ConfigResource, ResourceKind
from headwater.cluster.node_documents import CorruptNodeError
from headwater.cluster.store.metadata_store import MetadataStore
from headwater.cluster.topics.new_topic import (
    ControllerOptions,
    CreatedTopic,
    NewPartitions,
    NewTopic,
)
from tests.support.async_tests import run_async
from tests.support.brokers.controllers import take_seat
from tests.support.brokers.metadata_stores import open_in_memory, open_sqlite

TOPIC = ConfigResource(ResourceKind.TOPIC, "t")


async def _document(store: MetadataStore, path: str) -> object:
    return json.loads((await store.get(path)).data)


def _state(image: ClusterImage) -> tuple[object, ...]:
    return (
        image.cluster_id,
        sorted(image.topics.items()),
        sorted((str(key), name) for key, name in image.topic_names.items()),
        sorted((key, dict(value.configs), value.version) for key, value in image.configs.items()),
    )


@run_async
async def test_the_nodes_are_those_that_kafka_keeps() -> None:
    store = (await open_in_memory()).connect()
    seat = await take_seat(store)
    controller = seat.controller
    answers = await controller.create_topics([NewTopic("orders", 2, configs={"b": "2", "a": "1"})])
    created = answers["orders"]
    assert isinstance(created, CreatedTopic)
    assert await _document(store, "/controller") == {
        "version": 1,
        "brokerid": 0,
        "timestamp": "1700000000000",
    }
    assert (await store.get("/controller_epoch")).data == b"1"
    cluster_id = controller.image.cluster_id
    assert len(cluster_id) == 22
    assert await _document(store, "/cluster/id") == {"version": "1", "id": cluster_id}
    registration = await _document(store, "/brokers/ids/0")
    assert isinstance(registration, dict)
    assert registration["endpoints"] == ["PLAINTEXT://localhost:9092"]
    topic_document = await _document(store, "/brokers/topics/orders")
    assert isinstance(topic_document, dict) and len(topic_document.pop("topic_id")) == 22
    assert topic_document == {
        "version": 3,
        "partitions": {"0": [0], "1": [0]},
        "adding_replicas": {},
        "removing_replicas": {},
    }
    state = (await store.get("/brokers/topics/orders/partitions/1/state")).data
    assert state == b'{"controller_epoch":1,"leader":0,"version":1,"leader_epoch":0,"isr":[0]}'
    config = (await store.get("/config/topics/orders")).data
    assert config == b'{"version":1,"config":{"a":"1","b":"2"}}'
    assert (await controller.allocate_producer_ids(0)) == range(1_000)
    block = (await store.get("/latest_producer_id_block")).data
    assert block == b'{"version":1,"broker":0,"block_start":"0","block_end":"999"}'


@run_async
async def test_a_restart_finds_all_that_was_there(tmp_path: Path) -> None:
    store = await open_sqlite(tmp_path)
    seat = await take_seat(store.connect())
    controller = seat.controller
    await controller.create_topics([NewTopic("t", 3, configs={"a": "1"}), NewTopic("u.v")])
    await controller.create_partitions([NewPartitions("t", 5)])
    await controller.set_configs(TOPIC, {"b": "2"})
    await controller.set_configs(ConfigResource(ResourceKind.BROKER, ""), {"c": "3"})
    await controller.set_configs(ConfigResource(ResourceKind.BROKER, "0"), {"d": "4"})
    await controller.set_configs(ConfigResource(ResourceKind.GROUP, "a/b"), {"e": "5"})
    await controller.set_configs(ConfigResource(ResourceKind.CLIENT_METRICS, ".."), {"f": "6"})
    before, epoch = _state(controller.image), seat.broker.broker_epoch
    await store.close()
    for restarts in range(1, 4):
        store = await open_sqlite(tmp_path)
        session = store.connect()
        seat = await take_seat(session)
        controller = seat.controller
        assert _state(controller.image) == before
        assert controller.image.controller_id == 0
        assert controller.image.brokers == {0: seat.broker}
        assert controller.image.broker_configs(None) == {"c": "3"}
        assert controller.image.broker_configs(0) == {"d": "4"}
        assert controller.image.broker_configs(1) == {}
        assert controller.image.group_configs("a/b") == {"e": "5"}
        assert controller.image.client_metrics_configs("..") == {"f": "6"}
        assert seat.broker.broker_epoch > epoch
        epoch = seat.broker.broker_epoch
        assert int((await session.get("/controller_epoch")).data) == 1 + restarts
        # Only an election changes a leader's epoch, and nobody lost the leadership.
        assert {each.leader_epoch for each in controller.image.topics["t"].partitions} == {0}
        collides = (await controller.create_topics([NewTopic("u_v")]))["u_v"]
        assert isinstance(collides, KafkaError)
        await store.close()


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        (ResourceKind.GROUP, "/config/groups/a%20b%2Fc"),
        (ResourceKind.CLIENT_METRICS, "/config/client-metrics/a%20b%2Fc"),
    ],
)
@run_async
async def test_what_has_no_settings_left_has_no_node(kind: ResourceKind, path: str) -> None:
    store = (await open_in_memory()).connect()
    controller = (await take_seat(store)).controller
    resource = ConfigResource(kind, "a b/c")
    assert await controller.set_configs(resource, {}, NO_CONFIGS) == NO_CONFIGS
    assert await store.exists(path) is None
    assert await controller.set_configs(resource, {"a": "1"}, NO_CONFIGS) == 0
    assert (await store.get(path)).data == b'{"version":1,"config":{"a":"1"}}'
    assert controller.image.configured(kind) == ["a b/c"]
    assert await controller.set_configs(resource, {"a": "2"}, 0) == 1
    with pytest.raises(ConfigConflictError, match="'a b/c' was changed by somebody else"):
        await controller.set_configs(resource, {}, 0)
    assert await controller.set_configs(resource, {}, 1) == NO_CONFIGS
    assert await store.exists(path) is None
    assert controller.image.config(resource).version == NO_CONFIGS
    assert controller.image.configured(kind) == []


@run_async
async def test_a_controller_that_was_replaced_unnoticed_cannot_write() -> None:
    store = await open_in_memory()
    session = store.connect()
    seat = await take_seat(session)
    controller = seat.controller
    other = store.connect()
    await other.set("/controller_epoch", b"2")
    answers = await controller.create_topics([NewTopic("t")])
    answer = answers["t"]
    assert isinstance(answer, KafkaError) and answer.code == ErrorCode.NOT_CONTROLLER
    assert await other.children("/brokers/topics") == []
    assert len(controller.image.topics) == 0
    with pytest.raises(KafkaError) as caught:
        await controller.set_configs(ConfigResource(ResourceKind.BROKER, ""), {})
    assert caught.value.code == ErrorCode.NOT_CONTROLLER
    assert seat.depositions == [1]


@run_async
async def test_one_request_for_many_topics_is_one_change_and_one_commit(tmp_path: Path) -> None:
    store = await open_sqlite(tmp_path)
    seat = await take_seat(store.connect())
    controller = seat.controller
    seat.publisher.changes.clear()
    commits = store.commit_count
    names = {f"t-{number}" for number in range(100)}
    await controller.create_topics([NewTopic(name) for name in sorted(names)])
    assert store.commit_count == commits + 1
    assert [change.changed_topics for change in seat.publisher.changes] == [names]
    await store.close()


@run_async
async def test_changes_at_the_same_time_do_not_lose_each_other() -> None:
    store = (await open_in_memory()).connect()
    seat = await take_seat(store)
    controller = seat.controller

    await asyncio.gather(
        *(controller.create_topics([NewTopic(f"t-{number}")]) for number in range(10)),
        *(controller.create_topics([NewTopic("same")]) for _ in range(3)),
    )
    ids = await asyncio.gather(*(controller.allocate_producer_ids(0, 10) for _ in range(20)))
    assert len(controller.image.topics) == 11
    assert await store.children("/brokers/topics") == sorted(controller.image.topics)
    assert sorted(number for block in ids for number in block) == list(range(200))


@run_async
async def test_partitions_are_added_and_never_taken_away() -> None:
    store = (await open_in_memory()).connect()
    seat = await take_seat(store)
    controller = seat.controller
    await controller.create_topics([NewTopic("t", 3), NewTopic("manual"), NewTopic("twice")])
    seat.publisher.changes.clear()
    requests = [
        NewPartitions("t", 5),
        NewPartitions("manual", 3, [[0], [0]]),
        NewPartitions("missing", 2),
    ]
    answers = await controller.create_partitions(requests, True)
    assert len(controller.image.topics["t"].partitions) == 3
    assert {name: error and error.code for name, error in answers.items()} == {
        "t": None,
        "manual": None,
        "missing": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert await controller.create_partitions(requests[:2]) == {"t": None, "manual": None}
    assert len(controller.image.topics["t"].partitions) == 5
    assert seat.publisher.changes[0].changed_topics == {"t", "manual"}
    refusals = [
        (NewPartitions("t", 5), ErrorCode.INVALID_PARTITIONS, "already has 5"),
        (NewPartitions("t", 2), ErrorCode.INVALID_PARTITIONS, "2 would not be an increase"),
        (NewPartitions("t", -1), ErrorCode.INVALID_PARTITIONS, "increase"),
        (NewPartitions("t", 2**31 - 1), ErrorCode.INVALID_PARTITIONS, "10000"),
        (NewPartitions("t", 7, [[0]]), ErrorCode.INVALID_REPLICA_ASSIGNMENT, "2 partitions"),
        (NewPartitions("t", 6, [[0, 0]]), ErrorCode.INVALID_REPLICA_ASSIGNMENT, "same broker"),
        (NewPartitions("t", 6, [[]]), ErrorCode.INVALID_REPLICA_ASSIGNMENT, "no broker"),
        (NewPartitions("t", 6, [[4]]), ErrorCode.INVALID_REPLICA_ASSIGNMENT, "not registered"),
    ]
    for request, code, words in refusals:
        error = (await controller.create_partitions([request]))["t"]
        assert error is not None and error.code == code and words in str(error)
    twice = [NewPartitions("twice", 2), NewPartitions("twice", 3), NewPartitions("twice", 4)]
    error = (await controller.create_partitions(twice))["twice"]
    assert error is not None and error.code == ErrorCode.INVALID_REQUEST
    assert len(controller.image.topics["twice"].partitions) == 1
    document = await _document(store, "/brokers/topics/t")
    assert isinstance(document, dict)
    assert sorted(document["partitions"]) == ["0", "1", "2", "3", "4"]


@run_async
async def test_configs_are_replaced_on_condition() -> None:
    store = (await open_in_memory()).connect()

    def refuse(configs: object, present: object) -> None:
        if configs == {"bad": "1"}:
            raise SettingError("There is no setting bad.")

    options = ControllerOptions(validate_topic_configs=refuse)
    seat = await take_seat(store, options)
    controller = seat.controller
    await controller.create_topics([NewTopic("t", configs={"a": "1"})])
    seat.publisher.changes.clear()
    version = controller.image.config(TOPIC).version
    new_version = await controller.set_configs(TOPIC, {"a": "2"}, version)
    assert controller.image.config(TOPIC) == ({"a": "2"}, new_version)
    assert seat.publisher.changes[-1].changed_configs == {TOPIC}
    with pytest.raises(ConfigConflictError):
        await controller.set_configs(TOPIC, {"a": "3"}, version)
    with pytest.raises(SettingError):
        await controller.set_configs(TOPIC, {"bad": "1"})
    assert controller.image.topic_configs("t") == {"a": "2"}
    await controller.set_configs(TOPIC, {})
    assert controller.image.topic_configs("t") == {}
    everywhere = ConfigResource(ResourceKind.BROKER, "")
    assert controller.image.config(everywhere).version == NO_CONFIGS
    assert await controller.set_configs(everywhere, {"x": "1"}, NO_CONFIGS) == 0
    with pytest.raises(ConfigConflictError):
        await controller.set_configs(everywhere, {"x": "2"}, NO_CONFIGS)
    assert (await store.get("/config/brokers/<default>")).data == (
        b'{"version":1,"config":{"x":"1"}}'
    )
    with pytest.raises(KafkaError) as caught:
        await controller.set_configs(ConfigResource(ResourceKind.TOPIC, "missing"), {})
    assert caught.value.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@run_async
async def test_producer_ids_end_where_the_protocol_ends() -> None:
    store = (await open_in_memory()).connect()
    seat = await take_seat(store)
    controller = seat.controller
    last = 2**63 - 1
    await store.create(
        "/latest_producer_id_block",
        b'{"version":1,"broker":3,"block_start":"0","block_end":"%d"}' % (last - 10),
    )
    assert await controller.allocate_producer_ids(0, 10) == range(last - 9, last + 1)
    with pytest.raises(KafkaError, match="left"):
        await controller.allocate_producer_ids(0, 1)


@pytest.mark.parametrize(
    ("path", "data"),
    [
        ("/cluster/id", b"7"),
        ("/controller_epoch", b"one"),
        ("/controller_epoch", b"9999999999"),
    ],
)
@run_async
async def test_a_damaged_node_stops_the_start_with_a_sentence(path: str, data: bytes) -> None:
    store = await open_in_memory()
    session = store.connect()
    seat = await take_seat(session)
    controller = seat.controller
    await controller.create_topics([NewTopic("t")])
    await session.set(path, data)
    await session.close()
    with pytest.raises(CorruptNodeError) as caught:
        await take_seat(store.connect())
    text = str(caught.value)
    assert path in text and text.endswith(".") and "\n" not in text
