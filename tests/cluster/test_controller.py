"""The controller on its store: what it writes there, tells its subscribers and keeps."""

import asyncio
import json
from pathlib import Path

import pytest

from headwater.base.clocks import ManualClock
from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.settings import SettingError
from headwater.cluster.config_changes import ConfigConflictError
from headwater.cluster.controller import Controller
from headwater.cluster.image import NO_CONFIGS, ClusterImage, ConfigResource, ResourceKind
from headwater.cluster.image_change import ImageChange
from headwater.cluster.new_topic import (
    ControllerOptions,
    CreatedTopic,
    NewPartitions,
    NewTopic,
)
from headwater.cluster.node_documents import CorruptNodeError
from headwater.cluster.store.embedded_store import EmbeddedStore
from headwater.cluster.store.errors import StoreWriteError
from headwater.cluster.store.journal import Changes
from headwater.cluster.store.metadata_store import MetadataStore
from tests.support.async_tests import run_async
from tests.support.controllers import (
    RecordingSubscriber,
    broker_info,
    new_controller,
    start_controller,
)
from tests.support.metadata_stores import DictJournal, open_in_memory, open_sqlite

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
    controller = await start_controller(store)
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
    assert (await controller.allocate_producer_ids()) == range(1_000)
    block = (await store.get("/latest_producer_id_block")).data
    assert block == b'{"version":1,"broker":0,"block_start":"0","block_end":"999"}'


@run_async
async def test_a_restart_finds_all_that_was_there(tmp_path: Path) -> None:
    store = await open_sqlite(tmp_path)
    controller = await start_controller(store.connect())
    await controller.create_topics([NewTopic("t", 3, configs={"a": "1"}), NewTopic("u.v")])
    await controller.create_partitions([NewPartitions("t", 5)])
    await controller.set_configs(TOPIC, {"b": "2"})
    await controller.set_configs(ConfigResource(ResourceKind.BROKER, ""), {"c": "3"})
    await controller.set_configs(ConfigResource(ResourceKind.BROKER, "0"), {"d": "4"})
    before, epoch = _state(controller.image), controller.broker.broker_epoch
    await store.close()
    for restarts in range(1, 4):
        store = await open_sqlite(tmp_path)
        session = store.connect()
        controller = await start_controller(session)
        assert _state(controller.image) == before
        assert controller.image.controller_id == 0
        assert controller.image.brokers == {0: controller.broker}
        assert controller.image.broker_configs(None) == {"c": "3"}
        assert controller.image.broker_configs(0) == {"d": "4"}
        assert controller.image.broker_configs(1) == {}
        assert controller.broker.broker_epoch > epoch
        epoch = controller.broker.broker_epoch
        assert int((await session.get("/controller_epoch")).data) == 1 + restarts
        # Only an election changes a leader's epoch, and nobody lost the leadership.
        assert {each.leader_epoch for each in controller.image.topics["t"].partitions} == {0}
        collides = (await controller.create_topics([NewTopic("u_v")]))["u_v"]
        assert isinstance(collides, KafkaError)
        await store.close()


@run_async
async def test_the_cluster_id_that_is_given_is_kept_and_another_is_refused() -> None:
    store = await open_in_memory()
    first = new_controller(store.connect())
    await first.start("my-cluster")
    assert first.image.cluster_id == "my-cluster"
    second = new_controller(store.connect(), broker=broker_info(1))
    with pytest.raises(KafkaError, match="my-cluster") as caught:
        await second.start("other")
    assert caught.value.code == ErrorCode.INCONSISTENT_CLUSTER_ID


@run_async
async def test_a_second_broker_of_the_same_id_is_refused_while_the_first_lives() -> None:
    store = await open_in_memory()
    session = store.connect()
    await start_controller(session)
    with pytest.raises(KafkaError, match="id 0") as caught:
        await start_controller(store.connect())
    assert caught.value.code == ErrorCode.DUPLICATE_BROKER_REGISTRATION
    await session.close()
    assert (await start_controller(store.connect())).is_active


@run_async
async def test_only_the_elected_one_may_change_anything() -> None:
    store = await open_in_memory()
    first_session = store.connect()
    first = await start_controller(first_session)
    second = await start_controller(store.connect(), broker=broker_info(1))
    assert (first.is_active, second.is_active) == (True, False)
    assert second.image.controller_id == 0 and set(second.image.brokers) == {0, 1}
    with pytest.raises(KafkaError) as caught:
        await second.create_topics([NewTopic("t")])
    assert caught.value.code == ErrorCode.NOT_CONTROLLER
    # One that lost its session is replaced, and its writes are refused from then on.
    await first_session.close()
    third = await start_controller(store.connect(), broker=broker_info(2))
    assert third.is_active
    answer = (await first.create_topics([NewTopic("t")]))["t"]
    assert isinstance(answer, KafkaError) and answer.code == ErrorCode.NOT_CONTROLLER
    with pytest.raises(KafkaError) as caught:
        await first.allocate_producer_ids()
    assert caught.value.code == ErrorCode.NOT_CONTROLLER


@run_async
async def test_a_controller_that_was_replaced_unnoticed_cannot_write() -> None:
    store = await open_in_memory()
    session = store.connect()
    controller = await start_controller(session)
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


class _Witness:
    """Looks, while it is told of a change, at what others would see."""

    def __init__(self, controller: Controller) -> None:
        self.controller = controller
        self.seen: list[tuple[bool, bool]] = []
        self.release = asyncio.Event()

    async def __call__(self, change: ImageChange) -> None:
        names = change.changed_topics or {topic.name for topic in change.deleted_topics}
        (name,) = names
        self.seen.append((name in self.controller.image.topics, name in change.image.topics))
        await self.release.wait()


@run_async
async def test_a_change_is_done_when_the_subscribers_are() -> None:
    controller = await start_controller((await open_in_memory()).connect())
    witness = _Witness(controller)
    controller.subscribe(witness)
    creation = asyncio.create_task(controller.create_topics([NewTopic("t")]))
    while not witness.seen:
        await asyncio.sleep(0)
    for _ in range(10):
        await asyncio.sleep(0)
    assert not creation.done() and len(controller.image.topics) == 0
    witness.release.set()
    await creation
    assert "t" in controller.image.topics
    await controller.delete_topics(["t"])
    # A new topic is not visible before its logs are there, a deleted one not while they go.
    assert witness.seen == [(False, True), (False, False)]


@run_async
async def test_a_caller_that_goes_away_does_not_stop_a_change_half_way() -> None:
    store = (await open_in_memory()).connect()
    controller = await start_controller(store)
    witness = _Witness(controller)
    controller.subscribe(witness)
    creation = asyncio.create_task(controller.create_topics([NewTopic("t")]))
    while not witness.seen:
        await asyncio.sleep(0)
    creation.cancel()
    with pytest.raises(asyncio.CancelledError):
        await creation
    witness.release.set()
    await controller.close()
    assert "t" in controller.image.topics


@run_async
async def test_a_subscriber_that_fails_does_not_stop_the_change(
    caplog: pytest.LogCaptureFixture,
) -> None:
    controller = await start_controller((await open_in_memory()).connect())

    async def fail(change: ImageChange) -> None:
        raise OSError("The disk is gone.")

    subscriber = RecordingSubscriber()
    controller.subscribe(fail)
    controller.subscribe(subscriber)
    created = (await controller.create_topics([NewTopic("t")]))["t"]
    assert isinstance(created, CreatedTopic)
    assert len(subscriber.changes) == 1
    assert [record.getMessage() for record in caplog.records] == [
        "A change of the metadata could not be followed: The disk is gone."
    ]


@run_async
async def test_a_bug_in_a_subscriber_is_not_hidden_and_the_image_stays_that_of_the_store() -> None:
    controller = await start_controller((await open_in_memory()).connect())

    async def divide(change: ImageChange) -> None:
        raise ZeroDivisionError

    controller.subscribe(divide)
    with pytest.raises(ZeroDivisionError):
        await controller.create_topics([NewTopic("t")])
    assert "t" in controller.image.topics


@run_async
async def test_one_request_for_many_topics_is_one_change_and_one_commit(tmp_path: Path) -> None:
    store = await open_sqlite(tmp_path)
    controller = await start_controller(store.connect())
    subscriber = RecordingSubscriber()
    controller.subscribe(subscriber)
    commits = store.commit_count
    names = {f"t-{number}" for number in range(100)}
    await controller.create_topics([NewTopic(name) for name in sorted(names)])
    assert store.commit_count == commits + 1
    assert [change.changed_topics for change in subscriber.changes] == [names]
    await store.close()


@run_async
async def test_changes_at_the_same_time_do_not_lose_each_other() -> None:
    store = (await open_in_memory()).connect()
    controller = await start_controller(store)

    async def linger(change: ImageChange) -> None:
        await asyncio.sleep(0.001)

    controller.subscribe(linger)
    await asyncio.gather(
        *(controller.create_topics([NewTopic(f"t-{number}")]) for number in range(10)),
        *(controller.create_topics([NewTopic("same")]) for _ in range(3)),
    )
    ids = await asyncio.gather(*(controller.allocate_producer_ids(10) for _ in range(20)))
    assert len(controller.image.topics) == 11
    assert await store.children("/brokers/topics") == sorted(controller.image.topics)
    assert sorted(number for block in ids for number in block) == list(range(200))


@run_async
async def test_partitions_are_added_and_never_taken_away() -> None:
    store = (await open_in_memory()).connect()
    controller = await start_controller(store)
    await controller.create_topics([NewTopic("t", 3), NewTopic("manual"), NewTopic("twice")])
    subscriber = RecordingSubscriber()
    controller.subscribe(subscriber)
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
    assert subscriber.changes[0].changed_topics == {"t", "manual"}
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
async def test_topics_are_deleted_by_name_or_id() -> None:
    store = (await open_in_memory()).connect()
    controller = await start_controller(store)
    nodes_before = await store.children("/brokers/topics")
    created = await controller.create_topics([NewTopic("t", 3), NewTopic("u"), NewTopic("stays")])
    subscriber = RecordingSubscriber()
    controller.subscribe(subscriber)
    t, u = controller.image.topics["t"], created["u"]
    assert isinstance(u, CreatedTopic)
    answers = await controller.delete_topics(["t", u.topic_id, "missing"])
    assert answers["t"] is None and answers[u.topic_id] is None
    missing = answers["missing"]
    assert missing is not None and missing.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert set(controller.image.topics) == {"stays"}
    assert controller.image.topic_by_id(u.topic_id) is None
    assert controller.image.config(TOPIC).version == NO_CONFIGS
    (change,) = subscriber.changes
    assert t in change.deleted_topics and len(change.deleted_topics) == 2
    unknown = (await controller.delete_topics([u.topic_id]))[u.topic_id]
    assert unknown is not None and unknown.code == ErrorCode.UNKNOWN_TOPIC_ID
    await controller.delete_topics(["stays"])
    for parent in ("/brokers/topics", "/config/topics", "/admin/delete_topics"):
        assert await store.children(parent) == nodes_before == []
    again = (await controller.create_topics([NewTopic("t")]))["t"]
    assert isinstance(again, CreatedTopic) and again.topic_id != t.topic_id


@run_async
async def test_deletion_can_be_turned_off() -> None:
    options = ControllerOptions(topic_deletion_enabled=False)
    controller = await start_controller((await open_in_memory()).connect(), options)
    await controller.create_topics([NewTopic("t")])
    error = (await controller.delete_topics(["t"]))["t"]
    assert error is not None and error.code == ErrorCode.TOPIC_DELETION_DISABLED
    assert "t" in controller.image.topics


@run_async
async def test_an_interrupted_deletion_is_finished_after_a_restart(tmp_path: Path) -> None:
    store = await open_sqlite(tmp_path)
    session = store.connect()
    controller = await start_controller(session)
    await controller.create_topics([NewTopic("t", 2), NewTopic("stays")])
    topic = controller.image.topics["t"]
    stopped = asyncio.Event()

    async def hang(change: ImageChange) -> None:
        stopped.set()
        await asyncio.Event().wait()

    controller.subscribe(hang)
    deletion = asyncio.create_task(controller.delete_topics(["t"]))
    await stopped.wait()
    # A mark whose topic was never there, as well.
    await session.create("/admin/delete_topics/never", b"")
    deletion.cancel()
    await store.close()

    store = await open_sqlite(tmp_path)
    session = store.connect()
    controller = new_controller(session)
    await controller.start()
    assert controller.image.topics["t"] == topic
    subscriber = RecordingSubscriber()
    controller.subscribe(subscriber)
    await controller.finish_interrupted_deletions()
    assert [change.deleted_topics for change in subscriber.changes] == [(topic,)]
    assert set(controller.image.topics) == {"stays"}
    assert await session.children("/brokers/topics") == ["stays"]
    assert await session.children("/admin/delete_topics") == []
    await controller.finish_interrupted_deletions()
    assert len(subscriber.changes) == 1
    await store.close()


class _FailingJournal(DictJournal):
    """Refuses as many commits as a test wants refused."""

    refusals = 0

    async def commit(self, changes: Changes, transaction_id: int) -> None:
        if self.refusals > 0:
            self.refusals -= 1
            raise StoreWriteError("The disk is full.")
        await super().commit(changes, transaction_id)


@run_async
async def test_a_disk_that_was_full_does_not_leave_a_topic_half_deleted() -> None:
    journal = _FailingJournal()
    session = (await EmbeddedStore.open(journal, ManualClock())).connect()
    controller = await start_controller(session)
    journal.refusals = 1
    answer = (await controller.create_topics([NewTopic("t")]))["t"]
    assert isinstance(answer, KafkaError) and answer.code == ErrorCode.KAFKA_STORAGE_ERROR
    assert isinstance((await controller.create_topics([NewTopic("t")]))["t"], CreatedTopic)
    journal.refusals = 1
    error = (await controller.delete_topics(["t"]))["t"]
    assert error is not None and error.code == ErrorCode.KAFKA_STORAGE_ERROR
    assert "t" in controller.image.topics

    async def fill_disk(change: ImageChange) -> None:
        journal.refusals = 1

    controller.subscribe(fill_disk)
    error = (await controller.delete_topics(["t"]))["t"]
    assert error is not None and error.code == ErrorCode.KAFKA_STORAGE_ERROR
    # The mark is durable and the logs are gone, so the topic is too; the nodes follow.
    assert "t" not in controller.image.topics
    assert await session.children("/admin/delete_topics") == ["t"]
    # As long as they cannot, the name cannot be had again; others can.
    journal.refusals = 1
    answers = await controller.create_topics([NewTopic("t"), NewTopic("other")])
    refused = answers["t"]
    assert isinstance(refused, KafkaError) and refused.code == ErrorCode.KAFKA_STORAGE_ERROR
    assert isinstance(answers["other"], CreatedTopic)
    journal.refusals = 0
    assert isinstance((await controller.create_topics([NewTopic("t")]))["t"], CreatedTopic)
    assert await session.children("/admin/delete_topics") == []


@run_async
async def test_configs_are_replaced_on_condition() -> None:
    store = (await open_in_memory()).connect()

    def refuse(configs: object) -> None:
        if configs == {"bad": "1"}:
            raise SettingError("There is no setting bad.")

    options = ControllerOptions(validate_topic_configs=refuse)
    controller = await start_controller(store, options)
    await controller.create_topics([NewTopic("t", configs={"a": "1"})])
    subscriber = RecordingSubscriber()
    controller.subscribe(subscriber)
    version = controller.image.config(TOPIC).version
    new_version = await controller.set_configs(TOPIC, {"a": "2"}, version)
    assert controller.image.config(TOPIC) == ({"a": "2"}, new_version)
    assert subscriber.changes[-1].changed_configs == {TOPIC}
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
    controller = await start_controller(store)
    last = 2**63 - 1
    await store.create(
        "/latest_producer_id_block",
        b'{"version":1,"broker":3,"block_start":"0","block_end":"%d"}' % (last - 10),
    )
    assert await controller.allocate_producer_ids(10) == range(last - 9, last + 1)
    with pytest.raises(KafkaError, match="left"):
        await controller.allocate_producer_ids(1)


@pytest.mark.parametrize(
    ("path", "data"),
    [
        ("/brokers/topics/t", b"{"),
        ("/brokers/topics/t", b'{"version":3,"partitions":{"0":[0]}}'),
        ("/brokers/topics/t", b'{"topic_id":"AAAAAAAAQACAAAAAAAAAAQ","partitions":{"1":[0]}}'),
        ("/brokers/topics/t", b'{"topic_id":"AAAAAAAAQACAAAAAAAAAAQ","partitions":{"0":["x"]}}'),
        ("/brokers/topics/t/partitions/0/state", b"[]"),
        ("/brokers/topics/t/partitions/0/state", b"null"),
        ("/brokers/topics/t/partitions/0/state", b'{"leader":0,"isr":[0]}'),
        ("/config/topics/t", b'{"config":{"a":1}}'),
        ("/config/topics/t", b'{"config":[]}'),
        ("/config/topics/t", b"\xff"),
        ("/cluster/id", b"7"),
        ("/controller_epoch", b"one"),
    ],
)
@run_async
async def test_a_damaged_node_stops_the_start_with_a_sentence(path: str, data: bytes) -> None:
    store = await open_in_memory()
    session = store.connect()
    controller = await start_controller(session)
    await controller.create_topics([NewTopic("t")])
    await session.set(path, data)
    await session.close()
    with pytest.raises(CorruptNodeError) as caught:
        await start_controller(store.connect())
    text = str(caught.value)
    assert path in text and text.endswith(".") and "\n" not in text
