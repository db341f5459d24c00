"""The controller when brokers fail, come back, and stop in order."""

from pathlib import Path

import pytest

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import TopicPartition
from headwater.cluster.image.image import NO_LEADER, ConfigResource, ResourceKind
from headwater.cluster.partitions.elections import ElectionType
from headwater.cluster.topics.new_topic import ControllerOptions, NewTopic
from tests.support.async_tests import run_async
from tests.support.brokers.controllers import until
from tests.support.brokers.metadata_stores import WORLDS, EmbeddedWorld, OpenWorld, open_in_memory
from tests.support.models.broker_crowd import BrokerCrowd, describe, fresh_image


async def _check_store(crowd: BrokerCrowd) -> None:
    assert describe(crowd.image) == describe(await fresh_image(crowd))


@pytest.mark.parametrize("open_world", WORLDS.values(), ids=WORLDS)
@run_async
async def test_stopping_broker_0_of_the_notes(open_world: OpenWorld, tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await _stop_broker_0(await BrokerCrowd.on(world, [1, 0, 2]))


async def _stop_broker_0(crowd: BrokerCrowd) -> None:
    await crowd.create("topic-leader", (1, 2, 0), (2, 0, 1), (0, 1, 2))
    for number, isr in enumerate([(2, 0, 1), (2, 0, 1), (0, 2, 1)]):
        await crowd.alter(isr[:1] if number else isr[2:], "topic-leader", number)
        assert (await crowd.alter(isr, "topic-leader", number)).error_code == ErrorCode.NONE
    await crowd.fail(0)
    await crowd.settle()
    partitions = crowd.image.topics["topic-leader"].partitions
    assert [(each.leader, each.isr) for each in partitions] == [
        (1, (2, 0, 1)),
        (2, (2, 0, 1)),
        (1, (0, 2, 1)),
    ]
    # The leaders find that broker 0 is gone.
    for number in range(3):
        answer = await crowd.alter((2, 1), "topic-leader", number)
        assert answer.error_code == ErrorCode.NONE
    partitions = crowd.image.topics["topic-leader"].partitions
    assert [(each.leader, each.isr) for each in partitions] == [
        (1, (2, 1)),
        (2, (2, 1)),
        (1, (2, 1)),
    ]
    assert [each.leader_epoch for each in partitions] == [0, 0, 1]
    await _check_store(crowd)
    await crowd.close()


@run_async
async def test_failures_seen_at_once_are_one_change_of_many_partitions() -> None:
    store = await open_in_memory()
    crowd = await BrokerCrowd.on(EmbeddedWorld(store), range(5))
    await crowd.create("t", *[(1, 2, 3), (2, 1, 4), (4, 2, 1)] * 150)
    changes = crowd.seat.publisher.changes
    changes.clear()
    before = store.tree.transaction_id
    await crowd.fail(1, 2)
    await crowd.settle()
    (change,) = changes
    assert change.changed_brokers == {1, 2}
    led_by_them = frozenset(number for number in range(450) if number % 3 != 2)
    assert change.changed_partitions == {"t": led_by_them}
    # Two sessions ended, and 300 states were written by a hundred.
    assert store.tree.transaction_id - before == 2 + 3
    assert {each.leader for each in crowd.image.topics["t"].partitions} == {3, 4}
    assert crowd.seat.controller.election_count == 300
    await _check_store(crowd)
    await crowd.close()


@run_async
async def test_a_quick_restart_is_a_failure_and_a_return() -> None:
    crowd = await BrokerCrowd.of(range(4))
    await crowd.create_each((1, 2, 3), (1, 2))
    crowd.seat.publisher.changes.clear()
    await crowd.fail(1)
    await crowd.register(1)
    await crowd.settle()
    assert crowd.led() == [(2, (1, 2, 3)), (2, (1, 2))]
    assert len(crowd.seat.publisher.changes) == 1
    await _check_store(crowd)
    await crowd.close()


@run_async
async def test_an_offline_partition_waits_for_whoever_was_in_sync() -> None:
    crowd = await BrokerCrowd.of(range(3))
    await crowd.create("t", (1, 2))
    assert (await crowd.alter([1])).error_code == ErrorCode.NONE
    await crowd.fail(1)
    await crowd.settle()
    assert crowd.partition()[:5] == ((1, 2), (1,), NO_LEADER, 1, 2)
    await crowd.fail(2)
    await crowd.register(2)
    await crowd.settle()
    assert crowd.partition().leader == NO_LEADER
    await crowd.register(1)
    await crowd.settle()
    assert crowd.partition()[:5] == ((1, 2), (1,), 1, 2, 3)
    assert (await crowd.alter([1, 2])).error_code == ErrorCode.NONE
    await _check_store(crowd)
    await crowd.close()


@run_async
async def test_whoever_comes_back_unclean_leaves_the_isr_before_it_leads() -> None:
    crowd = await BrokerCrowd.of(range(4))
    await crowd.create_each((1, 2, 3), (1, 2), (1,))
    await crowd.fail(1)
    await crowd.register(1, is_unclean=True)
    await crowd.settle()
    # The only one stays and leads, but in a new epoch: it may give old offsets to new records.
    assert crowd.led() == [(2, (2, 3)), (2, (2,)), (1, (1,))]
    assert crowd.partition("2").leader_epoch == 1
    await _check_store(crowd)
    await crowd.close()


@run_async
async def test_a_new_controller_finds_who_failed_and_who_came_back_unclean_meanwhile() -> None:
    crowd = await BrokerCrowd.of(range(4))
    await crowd.create_each((1, 2, 3), (3, 2), (1, 3))
    await crowd.fail(0, 1, 3)
    await crowd.register(3, is_unclean=True)
    seat = await crowd.elect(2)
    image = seat.publisher.changes[0].image
    assert (image.controller_id, image.controller_epoch) == (2, 2)
    assert set(image.brokers) == {2, 3}
    assert crowd.led() == [(2, (1, 2)), (2, (2,)), (NO_LEADER, (1,))]
    assert await crowd.observer.children("/brokers/unclean") == []
    await crowd.register(1)
    await crowd.settle()
    assert crowd.partition("2").leader == 1
    await _check_store(crowd)
    await crowd.close()


@run_async
async def test_a_leader_that_was_killed_while_there_was_no_controller_leads_in_a_new_epoch() -> (
    None
):
    crowd = await BrokerCrowd.of(range(3))
    await crowd.create_each((1,), (1, 2), (2,))
    await crowd.fail(0, 1, 2)
    await crowd.register(1, is_restarted=True)
    await crowd.register(2)
    await crowd.elect(1)
    assert crowd.led() == [(1, (1,)), (2, (1, 2)), (2, (2,))]
    # Broker 2 had stopped in order: its high watermark is what it was.
    assert [crowd.partition(name).leader_epoch for name in "012"] == [1, 1, 0]
    assert await crowd.observer.children("/brokers/unclean") == []
    await _check_store(crowd)
    await crowd.close()


@run_async
async def test_an_image_without_changes_is_announced_by_a_new_controller_too() -> None:
    crowd = await BrokerCrowd.of(range(2))
    await crowd.create("t", (0, 1))
    first = crowd.seat
    second = await crowd.replace_controller(1)
    (change,) = second.publisher.changes
    assert change.image.version == 1 and "t" in change.image.topics
    with pytest.raises(KafkaError) as caught:
        await first.controller.shut_down_broker(1, crowd.brokers[1].broker_epoch)
    assert caught.value.code == ErrorCode.NOT_CONTROLLER
    assert first.depositions == [1]
    await crowd.close()


@pytest.mark.parametrize("where", ["topic", "cluster", "option"])
@run_async
async def test_unclean_elections_happen_where_they_are_allowed(where: str) -> None:
    options = ControllerOptions(unclean_leader_election_enabled=where == "option")
    crowd = await BrokerCrowd.of(range(3), options)
    await crowd.create("t", (1, 2))
    await crowd.create("never", (1, 2))
    never = ConfigResource(ResourceKind.TOPIC, "never")
    await crowd.seat.controller.set_configs(never, {"unclean.leader.election.enable": "false"})
    await crowd.alter([1])
    await crowd.alter([1], "never")
    await crowd.fail(1)
    if where != "option":
        await crowd.settle()
        assert crowd.partition().leader == NO_LEADER
        resource = (
            ConfigResource(ResourceKind.TOPIC, "t")
            if where == "topic"
            else ConfigResource(ResourceKind.BROKER, "")
        )
        await crowd.seat.controller.set_configs(
            resource, {"unclean.leader.election.enable": "true"}
        )
    await until(lambda: crowd.partition().leader == 2)
    assert crowd.partition().isr == (2,)
    assert crowd.partition("never").leader == NO_LEADER
    assert crowd.seat.controller.unclean_election_count == 1
    await crowd.close()


@run_async
async def test_a_broker_that_stops_in_order_hands_over_what_it_leads() -> None:
    crowd = await BrokerCrowd.of(range(4))
    await crowd.create_each((1, 2, 3), (2, 1, 3), (1, 2), (1,), (1, 3))
    assert (await crowd.alter([1], "4")).error_code == ErrorCode.NONE
    controller, epoch = crowd.seat.controller, crowd.brokers[1].broker_epoch
    for broker_id, broker_epoch, code in [
        (1, epoch - 1, ErrorCode.STALE_BROKER_EPOCH),
        (9, epoch, ErrorCode.BROKER_ID_NOT_REGISTERED),
    ]:
        with pytest.raises(KafkaError) as caught:
            await controller.shut_down_broker(broker_id, broker_epoch)
        assert caught.value.code == code
    # Of the last one it alone is in sync; the one with a single replica is not counted.
    assert await controller.shut_down_broker(1, epoch) == 1
    assert crowd.led() == [(2, (1, 2, 3)), (2, (2, 1, 3)), (2, (1, 2)), (1, (1,)), (1, (1,))]
    # It joins no ISR any more, and is elected for nothing.
    assert (await crowd.alter([2, 3], "0")).error_code == ErrorCode.NONE
    assert (await crowd.alter([2, 3, 1], "0")).error_code == ErrorCode.INELIGIBLE_REPLICA
    preferred = [TopicPartition("0", 0)]
    outcome = await controller.elect_leaders(ElectionType.PREFERRED, preferred)
    error = outcome[preferred[0]]
    assert error is not None and error.code == ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
    await controller.create_topics([NewTopic("new", 8, 1)])
    # In its next life it is a broker like all others.
    await crowd.fail(1)
    await crowd.register(1)
    await crowd.settle()
    assert [leader for leader, _ in crowd.led()] == [2, 2, 2, 1, 1]
    assert (await crowd.alter([2, 3, 1], "0")).error_code == ErrorCode.NONE
    assert await controller.elect_leaders(ElectionType.PREFERRED, preferred) == {preferred[0]: None}
    await _check_store(crowd)
    await crowd.close()


@run_async
async def test_elections_on_demand() -> None:
    crowd = await BrokerCrowd.of(range(4))
    await crowd.create("t", (1, 2), (2, 1), (3, 2))
    await crowd.alter([3], number=2)
    await crowd.fail(1, 3)
    await crowd.settle()
    await crowd.register(1)
    await crowd.settle()
    controller = crowd.seat.controller
    names = [TopicPartition("t", number) for number in range(3)]
    unknown = [TopicPartition("t", 3), TopicPartition("t", -1), TopicPartition("u", 0)]

    def codes(outcome: dict[TopicPartition, KafkaError | None]) -> list[int]:
        return [0 if error is None else error.code for error in outcome.values()]

    assert [crowd.partition(number=number).leader for number in range(3)] == [2, 2, NO_LEADER]
    outcome = await controller.elect_leaders(ElectionType.PREFERRED, [*names, *unknown])
    assert codes(outcome) == [
        ErrorCode.NONE,
        ErrorCode.ELECTION_NOT_NEEDED,
        ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
        *[ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * 3,
    ]
    assert crowd.partition().leader == 1
    assert await controller.elect_leaders(ElectionType.UNCLEAN, None) == {names[2]: None}
    assert (crowd.partition(number=2).leader, crowd.partition(number=2).isr) == (2, (2,))
    await crowd.fail(2)
    await crowd.settle()
    outcome = await controller.elect_leaders(ElectionType.UNCLEAN, names)
    assert codes(outcome) == [
        ErrorCode.ELECTION_NOT_NEEDED,
        ErrorCode.ELECTION_NOT_NEEDED,
        ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
    ]
    await _check_store(crowd)
    await crowd.close()
