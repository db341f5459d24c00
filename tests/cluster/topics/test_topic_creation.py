"""Which topics are refused, with which code, and how the others come out."""

from collections.abc import Mapping, Sequence

import pytest

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import ZERO_TOPIC_ID
from headwater.base.settings import SettingError
from headwater.cluster.brokers.registration import register_broker
from headwater.cluster.identity import prepare_store
from headwater.cluster.store.metadata_store import MetadataStore
from headwater.cluster.topics.new_topic import (
    ControllerOptions,
    CreatedTopic,
    ManualAssignment,
    NewTopic,
)
from tests.support.async_tests import run_async
from tests.support.brokers.controllers import Seat, broker_info, take_seat
from tests.support.brokers.metadata_stores import open_in_memory

Assigned = ManualAssignment


def _refuse_unknown(configs: Mapping[str, str], present: Mapping[str, str]) -> None:
    for name in configs:
        if name != "retention.ms":
            raise SettingError(f"There is no setting {name}.")


class _Policy:
    """Refuses topics whose name says so, and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[object, ...]] = []

    def validate(
        self,
        name: str,
        partitions: int | None,
        replication_factor: int | None,
        assignments: Mapping[int, Sequence[int]] | None,
        configs: Mapping[str, str],
    ) -> None:
        self.asked.append((name, partitions, replication_factor, assignments, dict(configs)))
        if name.startswith("bad"):
            raise ValueError("Names must not begin with bad.")


async def _cluster(
    options: ControllerOptions | None = None, broker_count: int = 1
) -> tuple[Seat, MetadataStore]:
    """A controller on broker 0, in a cluster with more brokers."""
    store = await open_in_memory()
    session = store.connect()
    await prepare_store(session)
    for broker_id in range(1, broker_count):
        await register_broker(session, broker_info(broker_id), 0)
    return await take_seat(session, options), session


@pytest.mark.parametrize(
    ("topic", "code"),
    [
        (NewTopic(""), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (NewTopic(".."), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (NewTopic("a b"), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (NewTopic("x" * 250), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (NewTopic("there.is"), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (NewTopic("there_is"), ErrorCode.TOPIC_ALREADY_EXISTS),
        (NewTopic("t", 0), ErrorCode.INVALID_PARTITIONS),
        (NewTopic("t", -2), ErrorCode.INVALID_PARTITIONS),
        (NewTopic("t", 1, 0), ErrorCode.INVALID_REPLICATION_FACTOR),
        (NewTopic("t", 1, -2), ErrorCode.INVALID_REPLICATION_FACTOR),
        (NewTopic("t", 1, 4), ErrorCode.INVALID_REPLICATION_FACTOR),
        (NewTopic("t", 10_001), ErrorCode.POLICY_VIOLATION),
        (NewTopic("t", 2**31 - 1), ErrorCode.POLICY_VIOLATION),
        (NewTopic("t", configs={"no.such": "1"}), ErrorCode.INVALID_CONFIG),
        (NewTopic("t", configs={"retention.ms": None}), ErrorCode.INVALID_CONFIG),
        (NewTopic("bad"), ErrorCode.POLICY_VIOLATION),
        (NewTopic("t", 1, -1, [Assigned(0, (0,))]), ErrorCode.INVALID_REQUEST),
        (NewTopic("t", -1, 1, [Assigned(0, (0,))]), ErrorCode.INVALID_REQUEST),
        (NewTopic("t", assignments=[Assigned(1, (0,))]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (NewTopic("__cluster_metadata"), ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        (NewTopic("t", assignments=[Assigned(-1, (0,))]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (NewTopic("t", assignments=[Assigned(0, ())]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (NewTopic("t", assignments=[Assigned(0, (0, 0))]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (NewTopic("t", assignments=[Assigned(0, (0, 9))]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (
            NewTopic("t", assignments=[Assigned(0, (0,)), Assigned(0, (0,))]),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        ),
        (
            NewTopic("t", assignments=[Assigned(0, (0,)), Assigned(1, (0, 1))]),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        ),
        (
            NewTopic("t", assignments=[Assigned(0, (0,)), Assigned(2, (0,))]),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        ),
    ],
)
@run_async
async def test_a_topic_is_refused_with_a_code_and_a_sentence(
    topic: NewTopic, code: ErrorCode
) -> None:
    options = ControllerOptions(
        validate_topic_configs=_refuse_unknown, create_topic_policy=_Policy()
    )
    seat, store = await _cluster(options, broker_count=3)
    controller = seat.controller
    await controller.create_topics([NewTopic("there_is")])
    seat.publisher.changes.clear()
    for validate_only in (True, False):
        answers = await controller.create_topics([topic, NewTopic("fine")], validate_only)
        answer = answers[topic.name]
        assert isinstance(answer, KafkaError) and answer.code == code
        assert str(answer).endswith(".") and "\n" not in str(answer)
        # One that is refused does not stop another, unless there are too many together.
        assert isinstance(answers["fine"], CreatedTopic) == ("10000" not in str(answer))
    assert await store.children("/config/topics") == await store.children("/brokers/topics")
    assert {"t", "there.is", "bad", ".."}.isdisjoint(controller.image.topics)
    assert all(change.changed_topics == {"fine"} for change in seat.publisher.changes)


@run_async
async def test_topics_that_collide_or_repeat_within_a_request_are_refused() -> None:
    seat, _ = await _cluster()
    controller = seat.controller
    names = ["one", "a.b", "twice", "a_b", "twice"]
    answers = await controller.create_topics([NewTopic(name) for name in names])
    codes = {
        name: answer.code if isinstance(answer, KafkaError) else None
        for name, answer in answers.items()
    }
    assert codes == {
        "one": None,
        "a.b": None,
        "twice": ErrorCode.INVALID_REQUEST,
        "a_b": ErrorCode.INVALID_TOPIC_EXCEPTION,
    }
    assert set(controller.image.topics) == {"one", "a.b"}
    await controller.delete_topics(["a.b"])
    answers = await controller.create_topics([NewTopic("a_b")])
    assert isinstance(answers["a_b"], CreatedTopic)


@run_async
async def test_defaults_come_from_the_options() -> None:
    options = ControllerOptions(default_partition_count=4, default_replication_factor=2)
    seat, _ = await _cluster(options, broker_count=3)
    controller = seat.controller
    created = (await controller.create_topics([NewTopic("t", configs={"a": "b"})]))["t"]
    assert isinstance(created, CreatedTopic)
    assert (created.partition_count, created.replication_factor) == (4, 2)
    assert created.configs == {"a": "b"}
    topic = controller.image.topics["t"]
    assert topic.topic_id == created.topic_id != ZERO_TOPIC_ID
    assert controller.image.topic_by_id(created.topic_id) is topic
    assert controller.image.topic_configs("t") == {"a": "b"}
    for partition in topic.partitions:
        assert partition.isr == partition.replicas
        assert partition.leader == partition.replicas[0]
        assert (partition.leader_epoch, partition.partition_epoch) == (0, 0)


@run_async
async def test_a_default_that_the_cluster_cannot_meet_is_refused() -> None:
    seat, _ = await _cluster(ControllerOptions(default_replication_factor=3))
    controller = seat.controller
    answer = (await controller.create_topics([NewTopic("t")]))["t"]
    assert isinstance(answer, KafkaError)
    assert answer.code == ErrorCode.INVALID_REPLICATION_FACTOR


@run_async
async def test_a_manual_assignment_is_taken_as_it_is() -> None:
    seat, _ = await _cluster(broker_count=3)
    controller = seat.controller
    assignments = [Assigned(1, (2, 0)), Assigned(0, (1, 2))]
    created = (await controller.create_topics([NewTopic("t", assignments=assignments)]))["t"]
    assert isinstance(created, CreatedTopic)
    assert (created.partition_count, created.replication_factor) == (2, 2)
    partitions = controller.image.topics["t"].partitions
    assert [partition.replicas for partition in partitions] == [(1, 2), (2, 0)]
    assert [partition.leader for partition in partitions] == [1, 2]


@run_async
async def test_validation_alone_changes_nothing() -> None:
    seat, store = await _cluster()
    controller = seat.controller
    seat.publisher.changes.clear()
    created = (await controller.create_topics([NewTopic("t", 3)], True))["t"]
    assert isinstance(created, CreatedTopic)
    assert (created.partition_count, created.topic_id) == (3, ZERO_TOPIC_ID)
    assert len(controller.image.topics) == 0 and seat.publisher.changes == []
    assert await store.children("/brokers/topics") == []


@run_async
async def test_the_policy_sees_numbers_or_an_assignment() -> None:
    policy = _Policy()
    seat, _ = await _cluster(ControllerOptions(create_topic_policy=policy))
    controller = seat.controller
    answers = await controller.create_topics(
        [
            NewTopic("numbers", 2, configs={"a": "b"}),
            NewTopic("manual", assignments=[Assigned(0, (0,))]),
            NewTopic("bad"),
        ]
    )
    assert policy.asked == [
        ("numbers", 2, 1, None, {"a": "b"}),
        ("manual", None, None, {0: (0,)}, {}),
        ("bad", 1, 1, None, {}),
    ]
    assert str(answers["bad"]) == "Names must not begin with bad."


@run_async
async def test_ten_thousand_partitions_in_one_request() -> None:
    seat, store = await _cluster()
    controller = seat.controller
    answers = await controller.create_topics([NewTopic("a", 4_000), NewTopic("b", 6_000)])
    assert all(isinstance(answer, CreatedTopic) for answer in answers.values())
    assert len(controller.image.topics["b"].partitions) == 6_000
    assert await store.exists("/brokers/topics/b/partitions/5999/state") is not None
