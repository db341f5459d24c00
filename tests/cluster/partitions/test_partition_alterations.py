"""Which ISR changes of leaders the controller makes, and with which codes it refuses others."""

import asyncio
import uuid
from collections.abc import Callable

import pytest

from headwater.base.errors import ErrorCode, KafkaError
from headwater.cluster.image.image import NO_LEADER
from headwater.wire.messages.alter_partition import (
    AlterPartitionRequest,
    BrokerState,
    RequestPartitionData,
)
from tests.support.async_tests import run_async
from tests.support.brokers.metadata_stores import EmbeddedWorld, open_in_memory
from tests.support.models.broker_crowd import BrokerCrowd, describe, fresh_image

Spoil = Callable[[AlterPartitionRequest], None]


def _partition(request: AlterPartitionRequest) -> RequestPartitionData:
    return request.topics[0].partitions[0]


def _spoil_topic(request: AlterPartitionRequest) -> None:
    request.topics[0].topic_id = uuid.UUID(int=7)


def _spoil_number(request: AlterPartitionRequest) -> None:
    _partition(request).partition_index = 1


def _spoil_negative(request: AlterPartitionRequest) -> None:
    _partition(request).partition_index = -1


def _spoil_old_leader(request: AlterPartitionRequest) -> None:
    _partition(request).leader_epoch -= 1


def _spoil_new_leader(request: AlterPartitionRequest) -> None:
    _partition(request).leader_epoch += 1


def _spoil_old_version(request: AlterPartitionRequest) -> None:
    _partition(request).partition_epoch -= 1


def _spoil_new_version(request: AlterPartitionRequest) -> None:
    _partition(request).partition_epoch += 1


def _spoil_twice(request: AlterPartitionRequest) -> None:
    _partition(request).new_isr_with_epochs.append(BrokerState(broker_id=2))


def _spoil_stranger(request: AlterPartitionRequest) -> None:
    _partition(request).new_isr_with_epochs.append(BrokerState(broker_id=0))


def _spoil_member_epoch(request: AlterPartitionRequest) -> None:
    _partition(request).new_isr_with_epochs[1].broker_epoch -= 1


def _spoil_dead_member(request: AlterPartitionRequest) -> None:
    _partition(request).new_isr_with_epochs[1].broker_id = 3


@pytest.mark.parametrize(
    ("spoil", "code"),
    [
        (_spoil_topic, ErrorCode.UNKNOWN_TOPIC_ID),
        (_spoil_number, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (_spoil_negative, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (_spoil_old_leader, ErrorCode.FENCED_LEADER_EPOCH),
        (_spoil_new_leader, ErrorCode.NOT_CONTROLLER),
        (_spoil_old_version, ErrorCode.INVALID_UPDATE_VERSION),
        (_spoil_new_version, ErrorCode.NOT_CONTROLLER),
        (_spoil_twice, ErrorCode.INVALID_REQUEST),
        (_spoil_stranger, ErrorCode.INVALID_REQUEST),
        (_spoil_member_epoch, ErrorCode.INELIGIBLE_REPLICA),
        (_spoil_dead_member, ErrorCode.INELIGIBLE_REPLICA),
    ],
)
@run_async
async def test_what_does_not_fit_is_refused_and_changes_nothing(
    spoil: Spoil, code: ErrorCode
) -> None:
    crowd = await BrokerCrowd.of(range(4))
    await crowd.create("t", (2, 1, 3))
    await crowd.fail(1, 3)
    await crowd.settle()
    assert (await crowd.alter([2])).error_code == ErrorCode.NONE
    await crowd.register(1)
    await crowd.settle()
    before = crowd.partition()
    request = crowd.alteration(2, [2, 1])
    spoil(request)
    response = await crowd.seat.controller.alter_partitions(request)
    assert response.error_code == ErrorCode.NONE
    assert response.topics[0].partitions[0].error_code == code
    assert crowd.partition() == before
    # The same without the mistake is done.
    answer = await crowd.alter([2, 1])
    after = crowd.partition()
    assert answer.error_code == ErrorCode.NONE
    assert after == before._replace(isr=(2, 1), partition_epoch=before.partition_epoch + 1)
    assert (answer.leader_id, answer.leader_epoch, answer.partition_epoch, answer.isr) == (
        after.leader,
        after.leader_epoch,
        after.partition_epoch,
        [2, 1],
    )
    assert describe(crowd.image) == describe(await fresh_image(crowd))
    await crowd.close()


@run_async
async def test_only_the_leader_in_its_present_life_is_listened_to() -> None:
    crowd = await BrokerCrowd.of(range(3))
    await crowd.create("t", (1, 2))
    request = crowd.alteration(1, [1])
    request.broker_epoch -= 1
    response = await crowd.seat.controller.alter_partitions(request)
    assert (response.error_code, response.topics) == (ErrorCode.STALE_BROKER_EPOCH, [])
    request = crowd.alteration(1, [1])
    request.broker_id = 9
    response = await crowd.seat.controller.alter_partitions(request)
    assert response.error_code == ErrorCode.STALE_BROKER_EPOCH
    response = await crowd.seat.controller.alter_partitions(crowd.alteration(2, [2, 1]))
    assert response.topics[0].partitions[0].error_code == ErrorCode.INVALID_REQUEST
    assert crowd.partition().partition_epoch == 0
    # What is so already is answered as it is, and not written again.
    answer = await crowd.alter([2, 1])
    assert (answer.error_code, answer.partition_epoch, answer.isr) == (0, 0, [1, 2])
    await crowd.close()


@run_async
async def test_nobody_asks_or_joins_without_telling_its_life() -> None:
    crowd = await BrokerCrowd.of(range(3))
    await crowd.create("t", (1, 2))
    request = crowd.alteration(1, [1])
    request.broker_epoch = -1
    response = await crowd.seat.controller.alter_partitions(request)
    assert (response.error_code, response.topics) == (ErrorCode.STALE_BROKER_EPOCH, [])
    assert crowd.partition().isr == (1, 2)
    await crowd.alter([1])
    request = crowd.alteration(1, [1, 2])
    for member in _partition(request).new_isr_with_epochs:
        member.broker_epoch = -1
    response = await crowd.seat.controller.alter_partitions(request)
    assert response.topics[0].partitions[0].error_code == ErrorCode.INELIGIBLE_REPLICA
    assert crowd.partition().isr == (1,)
    await crowd.close()


@run_async
async def test_a_leader_that_leaves_itself_out_resigns() -> None:
    crowd = await BrokerCrowd.of(range(4))
    await crowd.create("t", (1, 2, 3))
    await crowd.alter([1, 2])
    assert (await crowd.alter([2, 3])).error_code == ErrorCode.INVALID_REQUEST
    await crowd.alter([1, 3, 2])
    answer = await crowd.alter([3, 2])
    assert (answer.error_code, answer.leader_id) == (ErrorCode.NEW_LEADER_ELECTED, 2)
    assert crowd.partition()[:5] == ((1, 2, 3), (3, 2), 2, 1, 3)
    assert (await crowd.alter([2])).error_code == ErrorCode.NONE
    before = crowd.partition()
    assert (await crowd.alter([])).error_code == ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
    assert crowd.partition() == before
    assert crowd.seat.controller.election_count == 1
    await crowd.close()


@run_async
async def test_a_follower_may_leave_but_not_leave_the_leader_alone() -> None:
    crowd = await BrokerCrowd.of(range(4))
    await crowd.create("t", (2, 1, 3))
    before = crowd.partition()

    async def ask(broker_id: int, isr: list[int]) -> int:
        request = crowd.alteration(broker_id, isr)
        response = await crowd.seat.controller.alter_partitions(request)
        return response.topics[0].partitions[0].error_code

    assert await ask(1, [2]) == ErrorCode.INVALID_REQUEST
    assert await ask(1, [2, 1]) == ErrorCode.INVALID_REQUEST
    assert await ask(0, [2, 1, 3]) == ErrorCode.INVALID_REQUEST
    assert crowd.partition() == before
    assert await ask(1, [2, 3]) == ErrorCode.NONE
    after = crowd.partition()
    assert after == before._replace(isr=(2, 3), partition_epoch=before.partition_epoch + 1)
    assert await ask(3, [2]) == ErrorCode.OPERATION_NOT_ATTEMPTED
    assert crowd.partition() == after


@run_async
async def test_a_partition_twice_in_a_request_changes_once() -> None:
    crowd = await BrokerCrowd.of(range(4))
    await crowd.create("t", (1, 2, 3))
    request = crowd.alteration(1, [1, 2])
    again = _partition(crowd.alteration(1, [1, 3]))
    guess = _partition(crowd.alteration(1, [1, 3]))
    guess.partition_epoch += 1
    request.topics[0].partitions += [again, guess]
    response = await crowd.seat.controller.alter_partitions(request)
    assert [each.error_code for each in response.topics[0].partitions] == [
        ErrorCode.NONE,
        ErrorCode.INVALID_UPDATE_VERSION,
        ErrorCode.INVALID_UPDATE_VERSION,
    ]
    assert crowd.partition().isr == (1, 2)
    assert describe(crowd.image) == describe(await fresh_image(crowd))
    await crowd.close()


@run_async
async def test_requests_that_wait_together_are_one_change() -> None:
    store = await open_in_memory()
    crowd = await BrokerCrowd.on(EmbeddedWorld(store), range(1, 5))
    replicas = [(leader, *(each for each in range(1, 5) if each != leader)) for leader in (1, 2, 3)]
    await crowd.create("t", *replicas * 50)
    controller, changes = crowd.seat.controller, crowd.seat.publisher.changes
    changes.clear()

    def shrink(leader: int) -> AlterPartitionRequest:
        """Broker 4 leaves all ISRs of a leader."""
        isr = [each for each in range(1, 5) if each != 4]
        request = crowd.alteration(leader, isr, number=leader - 1)
        for number in range(leader + 2, 150, 3):
            request.topics[0].partitions.append(
                _partition(crowd.alteration(leader, isr, "t", number))
            )
        return request

    transactions = store.tree.transaction_id
    responses = await asyncio.gather(
        *(controller.alter_partitions(shrink(leader)) for leader in (1, 2, 3))
    )
    for response in responses:
        assert {each.error_code for each in response.topics[0].partitions} == {0}
    assert {each.isr for each in crowd.image.topics["t"].partitions} == {(1, 2, 3)}
    assert len(changes) == 1 and store.tree.transaction_id == transactions + 2
    await crowd.close()


@run_async
async def test_whoever_waits_hears_that_another_is_the_controller() -> None:
    crowd = await BrokerCrowd.of(range(3))
    await crowd.create("t", (1, 2))
    first = crowd.seat.controller
    request = crowd.alteration(1, [1])
    await crowd.replace_controller(2)
    outcomes = await asyncio.gather(
        *(first.alter_partitions(request) for _ in range(3)), return_exceptions=True
    )
    for outcome in outcomes:
        assert isinstance(outcome, KafkaError) and outcome.code == ErrorCode.NOT_CONTROLLER
    assert crowd.partition().partition_epoch == 0 and crowd.partition().leader != NO_LEADER
    await first.close()
    with pytest.raises(KafkaError) as caught:
        await first.alter_partitions(request)
    assert caught.value.code == ErrorCode.NOT_CONTROLLER
    await crowd.close()
