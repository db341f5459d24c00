"""One thing where several may be given counts as one, in every public call."""

import asyncio
import inspect
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any, get_args, get_origin

import pytest

from headwater import (
    Admin,
    AsyncAdmin,
    AsyncConsumer,
    Consumer,
    NewTopic,
    Producer,
    TopicPartition,
    WorkerPool,
)
from headwater.base.errors import KafkaError
from headwater.client.admin import ConfigChange, ConfigResource, ResourceType
from headwater.client.given_items import given_items, given_names, given_partitions
from headwater.client.ranges.range_client import RangeClient
from headwater.testing.running_broker import RunningBroker

SHELLS = (Admin, AsyncAdmin, Consumer, AsyncConsumer, Producer, WorkerPool, RangeClient)
MANY = (Iterable, Collection, Sequence, list, set, frozenset, tuple)

#: What the parts of a client call each other with.
NOT_FOR_USERS = {(WorkerPool, "release")}

#: What else a call needs.
OTHERS: dict[str, Any] = {
    "group_id": "some group",
    "group_ids": ["some group"],
    "partitions": [TopicPartition("absent", 0)],
    "resources": [ConfigResource(ResourceType.BROKER, "0")],
    "now_ms": 0,
}


class OneName(str):
    """A name that is never taken apart."""

    def __iter__(self) -> Iterator[str]:
        raise AssertionError(f"{str(self)!r} was taken for its letters")


class OnePartition(TopicPartition):
    """A partition that is never taken apart by a loop."""

    def __iter__(self) -> Iterator[Any]:
        # `TopicPartition(*partition)` is all right.
        caller = inspect.currentframe()
        assert caller is not None and caller.f_back is not None
        assert caller.f_back.f_code.co_name in ("given_partitions", "seek", "position")
        return super().__iter__()


def taking_several(kind: type) -> list[tuple[type, str, str]]:
    """Every public method with a parameter that is annotated as several of a kind."""
    found: list[tuple[type, str, str]] = []
    for shell in SHELLS:
        for name, method in inspect.getmembers(shell, inspect.isfunction):
            if name.startswith("_") or (shell, name) in NOT_FOR_USERS:
                continue
            annotations = inspect.get_annotations(inspect.unwrap(method), eval_str=False)
            for parameter, annotation in annotations.items():
                if parameter != "return" and _is_several(_evaluated(annotation, method), kind):
                    found.append((shell, name, parameter))
    return found


def _evaluated(annotation: object, method: Callable[..., Any]) -> object:
    if not isinstance(annotation, str):
        return annotation
    try:
        return eval(annotation, inspect.unwrap(method).__globals__)
    except NameError:
        # Of pyarrow, which is imported when it is needed.
        return None


def _is_several(annotation: object, kind: type) -> bool:
    if get_origin(annotation) in MANY:
        return get_args(annotation)[:1] == (kind,)
    return any(_is_several(part, kind) for part in get_args(annotation))


@pytest.fixture(scope="module")
def broker() -> Iterator[RunningBroker]:
    # What is absent stays so, whoever subscribes to it.
    with RunningBroker(settings={"auto.create.topics.enable": "false"}) as running:
        yield running


def outcome(broker: RunningBroker, shell: type, name: str, parameter: str, given: object) -> str:
    """What a call comes to, as text; errors too, but not those of the test."""

    async def call_and_wait(client: Any) -> Any:
        async with client:
            result = getattr(client, name)(**arguments)
            return await result if inspect.isawaitable(result) else result

    signature = inspect.signature(getattr(shell, name))
    required = [
        each.name
        for each in signature.parameters.values()
        if each.default is inspect.Parameter.empty and each.name in OTHERS
    ]
    arguments = {other: OTHERS[other] for other in required} | {parameter: given}
    settings: dict[str, Any] = {"bootstrap_servers": broker.bootstrap}
    if shell in (Consumer, AsyncConsumer, WorkerPool):
        settings |= {"group_id": "g", "enable_auto_commit": False}
    try:
        if shell in (AsyncAdmin, AsyncConsumer):
            return as_text(asyncio.run(call_and_wait(shell(**settings))))
        if shell is WorkerPool:
            with Consumer(**settings) as consumer:
                WorkerPool(consumer, print, worker_count=1).subscribe(**arguments)
                return repr(consumer.subscription())
        with shell(**settings) as client:
            return as_text(getattr(client, name)(**arguments))
    except KafkaError as error:
        return f"{type(error).__name__}: {error}"


def as_text(result: object) -> str:
    """The result as it shows itself, without the room on the disk, which others use meanwhile."""
    return re.sub(r"usable_bytes=\d+", "usable_bytes=?", repr(result))


NAMES = taking_several(str)
PARTITIONS = taking_several(TopicPartition)


def test_all_calls_with_several_are_found() -> None:
    """So that the search below does not come to nothing."""
    assert (Admin, "delete_topics", "names") in NAMES
    assert (AsyncAdmin, "remove_members", "group_instance_ids") in NAMES
    assert (Admin, "describe_configs", "names") in NAMES
    assert (WorkerPool, "subscribe", "topics") in NAMES
    assert (Consumer, "pause", "partitions") in PARTITIONS
    assert (AsyncConsumer, "committed", "partitions") in PARTITIONS
    assert (len(NAMES), len(PARTITIONS)) >= (25, 20)


@pytest.mark.parametrize(
    ("shell", "name", "parameter"), NAMES, ids=lambda each: getattr(each, "__name__", each)
)
def test_one_name_is_one_name(
    broker: RunningBroker, shell: type, name: str, parameter: str
) -> None:
    one = outcome(broker, shell, name, parameter, OneName("absent"))
    several = outcome(broker, shell, name, parameter, ["absent"])
    # Who is fenced has a higher epoch each time.
    assert re.sub(r"\d+", "n", one) == re.sub(r"\d+", "n", several)


@pytest.mark.parametrize(
    ("shell", "name", "parameter"), PARTITIONS, ids=lambda each: getattr(each, "__name__", each)
)
def test_one_partition_is_one_partition(
    broker: RunningBroker, shell: type, name: str, parameter: str
) -> None:
    one = outcome(broker, shell, name, parameter, OnePartition("absent", 0))
    assert one == outcome(broker, shell, name, parameter, [TopicPartition("absent", 0)])


def test_a_topic_of_one_name_is_deleted_and_no_others(broker: RunningBroker) -> None:
    for name in ("s", "o", "so"):
        broker.create_topic(name)
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        admin.delete_topics("so")
        assert {topic.name for topic in admin.list_topics()} >= {"s", "o"}
        admin.create_topics(NewTopic("alone"))  # type: ignore[arg-type]
        resource = ConfigResource(ResourceType.TOPIC, "alone")
        admin.alter_configs({resource: ConfigChange("retention.ms", "5")})  # type: ignore[dict-item]
        [entries] = admin.describe_configs(
            resource,  # type: ignore[arg-type]
            names="retention.ms",
        ).values()
        assert isinstance(entries, list)
        assert [entry.value for entry in entries] == ["5"]


def test_what_is_given() -> None:
    pair = TopicPartition("orders", 0)
    assert given_names("orders") == ["orders"]
    assert given_names(name for name in ("a", "b")) == ["a", "b"]
    assert given_names({}) == []
    assert given_items(NewTopic("a"), NewTopic) == [NewTopic("a")]
    assert given_partitions(pair) == given_partitions([pair]) == [pair]  # type: ignore[arg-type]
    assert given_partitions([("orders", 0)]) == [pair]  # type: ignore[list-item]
    assert given_partitions({pair: 1}) == [pair]
    assert given_partitions([]) == []


@pytest.mark.parametrize("given", ["orders", ["orders"], ["or"], [("orders",)], [("orders", "0")]])
def test_what_is_no_partition(given: Any) -> None:
    with pytest.raises(TypeError, match="is not a partition: give TopicPartition"):
        given_partitions(given)


@pytest.mark.parametrize("given", [b"orders", [1], [None], [TopicPartition("orders", 0)]])
def test_what_is_no_name(given: Any) -> None:
    with pytest.raises(TypeError, match="cannot be used here: it must be text"):
        given_names(given)
