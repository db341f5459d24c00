"""Brokers whose directories are all cordoned get no new replicas."""

from __future__ import annotations

import pytest

from headwater.base.errors import ErrorCode, KafkaError
from headwater.cluster.brokers.registration import register_broker
from headwater.cluster.identity import prepare_store
from headwater.cluster.image.image import ConfigResource, ResourceKind
from headwater.cluster.topics.new_topic import (
    CreatedTopic,
    ManualAssignment,
    NewPartitions,
    NewTopic,
)
from tests.support.async_tests import run_async
from tests.support.brokers.controllers import Seat, broker_info, take_seat
from tests.support.brokers.metadata_stores import open_in_memory

DIRS = ("/a", "/b")


async def _cluster(*cordoned: tuple[str, ...]) -> Seat:
    """A controller on broker 0, with a broker for each that was started with these cordoned."""
    session = (await open_in_memory()).connect()
    await prepare_store(session)
    brokers = [
        broker_info(broker_id)._replace(log_dirs=DIRS, cordoned_log_dirs=paths)
        for broker_id, paths in enumerate(cordoned)
    ]
    for broker in brokers[1:]:
        await register_broker(session, broker, 0)
    return await take_seat(session, broker=brokers[0])


async def _create(seat: Seat, name: str, replication_factor: int) -> set[int] | ErrorCode:
    """The brokers that a new topic with many partitions is on, or why there is none."""
    answers = await seat.controller.create_topics([NewTopic(name, 12, replication_factor)])
    answer = answers[name]
    if isinstance(answer, KafkaError):
        assert "cordoned" in str(answer)
        return answer.code
    return _holders(seat, name)


def _holders(seat: Seat, name: str) -> set[int]:
    topic = seat.controller.image.topics[name]
    return {broker for partition in topic.partitions for broker in partition.replicas}


async def _set(seat: Seat, broker_id: int, text: str | None) -> None:
    configs = {} if text is None else {"cordoned.log.dirs": text}
    await seat.controller.set_configs(ConfigResource(ResourceKind.BROKER, str(broker_id)), configs)


@pytest.mark.parametrize("cordoned", [("*",), DIRS, ("/b", "/a")])
@run_async
async def test_by_what_a_broker_was_started_with(cordoned: tuple[str, ...]) -> None:
    seat = await _cluster((), cordoned, ("/a",))
    assert await _create(seat, "one", 1) == {0, 2}
    assert await _create(seat, "two", 2) == {0, 2}
    assert await _create(seat, "three", 3) == ErrorCode.INVALID_REPLICATION_FACTOR


@run_async
async def test_by_what_is_set_while_it_runs() -> None:
    seat = await _cluster((), ("*",), ())
    await _set(seat, 1, "")
    assert await _create(seat, "all", 3) == {0, 1, 2}
    await _set(seat, 0, "/a")
    await _set(seat, 2, "/b, /a")
    assert await _create(seat, "two", 2) == {0, 1}
    await _set(seat, 1, None)
    assert await _create(seat, "one", 1) == {0}
    await _set(seat, 0, "*")
    assert await _create(seat, "none", 1) == ErrorCode.INVALID_REPLICATION_FACTOR


@run_async
async def test_added_partitions_go_elsewhere_and_old_ones_stay() -> None:
    seat = await _cluster((), (), ())
    await _create(seat, "orders", 1)
    before = seat.controller.image.topics["orders"].partitions
    await _set(seat, 1, "*")
    await seat.controller.create_partitions([NewPartitions("orders", 24)])
    after = seat.controller.image.topics["orders"].partitions
    assert after[:12] == before
    assert {partition.replicas for partition in after[12:]} == {(0,), (2,)}


@run_async
async def test_an_assignment_by_hand_is_taken() -> None:
    seat = await _cluster((), ("*",))
    topic = NewTopic("orders", assignments=[ManualAssignment(0, (1, 0))])
    answers = await seat.controller.create_topics([topic])
    assert isinstance(answers["orders"], CreatedTopic)
    assert _holders(seat, "orders") == {0, 1}
