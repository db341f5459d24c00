"""How changes happen: in turns, to their end, and only while the controller is the controller."""

import asyncio
from collections.abc import Sequence

import pytest

from headwater.base.clocks import ManualClock
from headwater.base.errors import ErrorCode, KafkaError
from headwater.cluster.brokers import changes as broker_changes
from headwater.cluster.brokers.failures import BrokerTurnover
from headwater.cluster.brokers.registration import register_broker
from headwater.cluster.image.image import NO_LEADER, ConfigResource, ResourceKind
from headwater.cluster.store.embedded.journal import Changes
from headwater.cluster.store.embedded.session import EmbeddedSession
from headwater.cluster.store.embedded.store import EmbeddedStore
from headwater.cluster.store.errors import StoreWriteError, UncertainWriteError
from headwater.cluster.store.metadata_store import Operation, Result, Set
from headwater.cluster.topics.new_topic import (
    CreatedTopic,
    ManualAssignment,
    NewPartitions,
    NewTopic,
)
from tests.support.async_tests import run_async
from tests.support.brokers.controllers import broker_info, new_seat, take_seat, until
from tests.support.brokers.metadata_stores import DictJournal, EmbeddedWorld, open_in_memory
from tests.support.models.broker_crowd import BrokerCrowd, describe, fresh_image


async def _let_others_run() -> None:
    for _ in range(30):
        await asyncio.sleep(0)


@run_async
async def test_a_change_is_done_when_the_brokers_have_followed_and_the_next_does_not_wait() -> None:
    crowd = await BrokerCrowd.of(range(3))
    await crowd.create("t", (1, 2))
    crowd.seat.publisher.brokers_follow.clear()
    controller = crowd.seat.controller
    creation = asyncio.create_task(controller.create_topics([NewTopic("slow")]))
    await until(lambda: "slow" in crowd.image.topics)
    # Broker failures and ISR changes cannot wait for a broker that does not follow.
    await crowd.alter([1])
    await crowd.fail(2)
    await crowd.settle()
    assert crowd.partition().isr == (1,) and not creation.done()
    crowd.seat.publisher.brokers_follow.set()
    assert isinstance((await creation)["slow"], CreatedTopic)
    await crowd.close()


@run_async
async def test_what_changes_nothing_waits_for_nobody() -> None:
    seat = await take_seat((await open_in_memory()).connect())
    seat.publisher.brokers_follow.clear()
    assert isinstance(
        (await seat.controller.create_topics([NewTopic("a")], True))["a"], CreatedTopic
    )
    assert await seat.controller.allocate_producer_ids(0) == range(1_000)


@run_async
async def test_a_caller_that_goes_away_does_not_stop_a_change_half_way() -> None:
    session = (await open_in_memory()).connect()
    seat = await take_seat(session)
    await seat.controller.create_topics([NewTopic("t")])
    seat.publisher.brokers_follow.clear()
    deletion = asyncio.create_task(seat.controller.delete_topics(["t"]))
    await until(lambda: "t" not in seat.controller.image.topics)
    deletion.cancel()
    with pytest.raises(asyncio.CancelledError):
        await deletion
    closing = asyncio.create_task(seat.controller.close())
    await _let_others_run()
    assert not closing.done()
    seat.publisher.brokers_follow.set()
    await closing
    assert await session.children("/brokers/topics") == []


@run_async
async def test_requests_that_come_before_the_start_is_done_wait_for_it() -> None:
    store = await open_in_memory()
    await take_seat(store.connect())
    await store.close()
    store = await open_in_memory()
    seat = await new_seat(store.connect())
    start = asyncio.create_task(seat.controller.start())
    await asyncio.sleep(0)
    answers = await seat.controller.create_topics([NewTopic("t")])
    assert isinstance(answers["t"], CreatedTopic)
    await start
    assert seat.publisher.changes[0].image.version == 1


@run_async
async def test_nothing_is_done_after_the_end() -> None:
    session = (await open_in_memory()).connect()
    seat = await take_seat(session)
    await seat.controller.close()
    for attempt in (
        seat.controller.create_topics([NewTopic("t")]),
        seat.controller.delete_topics(["t"]),
        seat.controller.allocate_producer_ids(0),
        seat.controller.shut_down_broker(0, seat.broker.broker_epoch),
    ):
        with pytest.raises(KafkaError) as caught:
            await attempt
        assert caught.value.code == ErrorCode.NOT_CONTROLLER
    assert seat.depositions == []


class _UnsureSession(EmbeddedSession):
    """When it is told to, it does not know whether a write was done."""

    is_unsure = False

    async def multi(self, operations: Sequence[Operation]) -> list[Result]:
        results = await super().multi(operations)
        if self.is_unsure:
            raise UncertainWriteError(operations[-1].path)
        return results


@run_async
async def test_a_controller_that_is_not_sure_of_a_write_gives_up_its_seat() -> None:
    store = await open_in_memory()
    session = _UnsureSession(store, session_id=99)
    seat = await take_seat(session)
    session.is_unsure = True
    answers = await seat.controller.create_topics([NewTopic("t"), NewTopic("u")])
    for answer in answers.values():
        assert isinstance(answer, KafkaError) and answer.code == ErrorCode.NOT_CONTROLLER
    assert seat.depositions == [1]
    # It does not write any more, even if it could.
    session.is_unsure = False
    with pytest.raises(KafkaError) as caught:
        await seat.controller.allocate_producer_ids(0)
    assert caught.value.code == ErrorCode.NOT_CONTROLLER
    assert seat.depositions == [1]
    # Whoever comes next finds what was done.
    await session.delete("/controller")
    after = await take_seat(store.connect(), broker=broker_info(1))
    assert set(after.controller.image.topics) == {"t", "u"}


@run_async
async def test_a_controller_whose_session_is_over_gives_up_its_seat() -> None:
    crowd = await BrokerCrowd.of(range(3))
    first = crowd.seat
    await crowd.fail(0)
    with pytest.raises(KafkaError) as caught:
        await first.controller.set_configs(ConfigResource(ResourceKind.BROKER, ""), {})
    assert caught.value.code == ErrorCode.NOT_CONTROLLER
    assert first.depositions == [1]
    await crowd.close()


@run_async
async def test_a_controller_starts_over_when_a_state_is_not_what_it_was() -> None:
    crowd = await BrokerCrowd.of(range(3))
    await crowd.create("t", (1, 2))
    first, path = crowd.seat, "/brokers/topics/t/partitions/0/state"
    by_hand = b'{"controller_epoch":1,"leader":2,"version":1,"leader_epoch":7,"isr":[2]}'
    await crowd.observer.multi([Set(path, by_hand)])
    with pytest.raises(KafkaError) as caught:
        await crowd.alter([1])
    assert caught.value.code == ErrorCode.NOT_CONTROLLER
    assert first.depositions == [1]
    await crowd.replace_controller(1)
    assert crowd.partition()[:5] == ((1, 2), (2,), 2, 7, 1)
    await crowd.close()


class _FailingJournal(DictJournal):
    """Refuses as many commits as a test wants refused."""

    refusals = 0

    async def commit(self, changes: Changes, transaction_id: int) -> None:
        if self.refusals > 0:
            self.refusals -= 1
            raise StoreWriteError("The disk is full.")
        await super().commit(changes, transaction_id)


@run_async
async def test_a_failure_that_could_not_be_written_is_worked_off_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(broker_changes, "RETRY_PAUSE_S", 0.001)
    journal = _FailingJournal()
    store = await EmbeddedStore.open(journal, ManualClock())
    crowd = await BrokerCrowd.on(EmbeddedWorld(store), range(3))
    await crowd.create("t", (1, 2, 0))
    journal.refusals = 2
    await crowd.fail(1)
    await crowd.settle()
    assert journal.refusals == 0
    assert (crowd.partition().leader, crowd.partition().isr) == (2, (1, 2, 0))
    assert describe(crowd.image) == describe(await fresh_image(crowd))
    assert crowd.seat.depositions == []
    await crowd.close()


@run_async
async def test_a_topic_that_was_half_made_or_half_grown_is_completed() -> None:
    store = await open_in_memory()
    first = store.connect()
    seat = await take_seat(first)
    await seat.controller.create_topics([NewTopic("large", 450), NewTopic("small")])
    await seat.controller.create_partitions([NewPartitions("large", 900)])
    image = seat.controller.image
    for number in (*range(200, 450), *range(650, 900)):
        await first.delete(f"/brokers/topics/large/partitions/{number}/state")
        await first.delete(f"/brokers/topics/large/partitions/{number}")
    await first.close()
    crowd = await BrokerCrowd.on(EmbeddedWorld(store), [0])
    assert crowd.image.topics["large"] == image.topics["large"]
    assert describe(crowd.image) == describe(await fresh_image(crowd))
    await crowd.close()


@run_async
async def test_a_manual_assignment_may_name_a_broker_that_is_down_if_it_is_known() -> None:
    crowd = await BrokerCrowd.of(range(4))
    await crowd.create("old", (3, 2))
    await crowd.fail(3)
    await crowd.settle()
    await crowd.create("t", (3, 1), (2, 3))
    assert [crowd.partition(number=number).leader for number in range(2)] == [1, 2]
    assert [crowd.partition(number=number).isr for number in range(2)] == [(1,), (2,)]
    controller = crowd.seat.controller
    for replicas in ((3,), (1, 9)):
        topic = NewTopic("refused", assignments=[ManualAssignment(0, replicas)])
        answer = (await controller.create_topics([topic]))["refused"]
        assert isinstance(answer, KafkaError)
        assert answer.code == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    growth = await controller.create_partitions([NewPartitions("old", 2, [[3, 1]])])
    assert growth == {"old": None} and crowd.partition("old", 1).isr == (1,)
    await crowd.register(3)
    await crowd.settle()
    assert (await crowd.alter([1, 3])).error_code == ErrorCode.NONE
    await crowd.close()


@run_async
async def test_new_topics_keep_off_brokers_that_are_about_to_stop() -> None:
    crowd = await BrokerCrowd.of(range(3))
    await crowd.seat.controller.shut_down_broker(1, crowd.brokers[1].broker_epoch)
    await crowd.create("t", (1, 2))
    assert (crowd.partition().leader, crowd.partition().isr) == (2, (2,))
    # Where nobody else is assigned, it leads as long as it is there.
    await crowd.seat.controller.create_topics([NewTopic("each", 3, 1)])
    assert {each.leader for each in crowd.image.topics["each"].partitions} == {0, 1, 2}
    await crowd.fail(1)
    await crowd.settle()
    assert {each.leader for each in crowd.image.topics["each"].partitions} == {0, 2, NO_LEADER}
    await crowd.close()


@run_async
async def test_a_second_broker_of_an_id_is_not_taken_for_the_first() -> None:
    crowd = await BrokerCrowd.of(range(2))
    with pytest.raises(KafkaError):
        await register_broker(await crowd.world.connect(), broker_info(1), 0)
    await crowd.settle()
    await crowd.close()


@run_async
async def test_a_controller_that_meets_a_bug_of_its_own_makes_room_for_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    crowd = await BrokerCrowd.of(range(2))

    def divide(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    await crowd.create("t", (1, 0))
    monkeypatch.setattr(BrokerTurnover, "concerns", divide)
    await crowd.fail(1)
    await until(lambda: crowd.seat.depositions)
    assert crowd.seat.depositions == [1]
    await crowd.close()
