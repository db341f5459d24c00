"""The way of proposals to the controller: one request at a time, repeated until answered."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from headwater.base.background_tasks import BackgroundTasks
from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import TopicPartition
from headwater.replication.leading.isr_changes import IsrChanges
from headwater.replication.leading.isr_state import IsrProposal
from headwater.sim.virtual_loop import VirtualLoop
from headwater.wire.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    ResponsePartitionData,
    ResponseTopicData,
)
from headwater.wire.schema import Message

TOPIC_ID = uuid.UUID(int=3)


class _Owner:
    """A partition that has proposed something."""

    def __init__(self, number: int) -> None:
        self.topic_partition = TopicPartition("orders", number)
        self.topic_id = TOPIC_ID
        self.proposal: IsrProposal | None = None
        self.outcomes: list[object] = []
        self.asks_again = False

    def propose(self, changes: IsrChanges, isr: tuple[int, ...] = (0, 1)) -> IsrProposal:
        self.proposal = IsrProposal(4, 9, isr, tuple(100 + each for each in isr))
        changes.submit(self, self.proposal)
        return self.proposal

    def is_waiting_for(self, proposal: IsrProposal) -> bool:
        return self.proposal is proposal

    def accepted(self, proposal: IsrProposal, answer: ResponsePartitionData) -> None:
        self.outcomes.append(tuple(answer.isr))
        self.proposal = None

    def refused(self, proposal: IsrProposal, code: ErrorCode) -> bool:
        self.outcomes.append(code)
        if not self.asks_again:
            self.proposal = None
        return self.asks_again


class _Controller:
    """Answers as the test says; keeps what was asked."""

    def __init__(self) -> None:
        self.asked: list[AlterPartitionRequest] = []
        self.is_busy = asyncio.Event()
        self.may_answer = asyncio.Event()
        self.may_answer.set()
        self.faults: list[KafkaError | ErrorCode] = []
        self.codes: dict[int, ErrorCode] = {}
        self.under_way = 0

    async def ask(self, request: Message, timeout_s: float) -> AlterPartitionResponse:
        assert isinstance(request, AlterPartitionRequest) and timeout_s > 0
        self.asked.append(request)
        self.under_way += 1
        assert self.under_way == 1
        try:
            self.is_busy.set()
            await self.may_answer.wait()
            await asyncio.sleep(0.01)
            return self._answer(request)
        finally:
            self.under_way -= 1

    def _answer(self, request: AlterPartitionRequest) -> AlterPartitionResponse:
        if self.faults:
            fault = self.faults.pop(0)
            if isinstance(fault, KafkaError):
                raise fault
            return AlterPartitionResponse(error_code=fault)
        return AlterPartitionResponse(
            topics=[
                ResponseTopicData(
                    topic_id=topic.topic_id,
                    partitions=[
                        ResponsePartitionData(
                            partition_index=each.partition_index,
                            error_code=self.codes.get(each.partition_index, ErrorCode.NONE),
                            isr=[member.broker_id for member in each.new_isr_with_epochs],
                        )
                        for each in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )

    def numbers(self) -> list[list[int]]:
        return [
            [each.partition_index for topic in request.topics for each in topic.partitions]
            for request in self.asked
        ]


def _changes(controller: _Controller, epochs: Callable[[], int] = lambda: 77) -> IsrChanges:
    return IsrChanges(controller.ask, node_id=0, broker_epoch=epochs, tasks=BackgroundTasks())


def _run(scenario: Coroutine[Any, Any, None]) -> None:
    """On virtual time, so that pauses cost nothing."""
    loop = VirtualLoop()
    try:
        loop.run_until_complete(scenario)
    finally:
        loop.close()


async def _until_answered(changes: IsrChanges) -> None:
    while len(changes):
        await asyncio.sleep(0.005)


def test_proposals_of_one_moment_go_together_and_later_ones_with_the_next_request() -> None:
    async def scenario() -> None:
        controller = _Controller()
        controller.may_answer.clear()
        changes = _changes(controller)
        owners = [_Owner(number) for number in range(5)]
        for owner in owners[:3]:
            owner.propose(changes)
        await controller.is_busy.wait()
        for owner in owners[3:]:
            owner.propose(changes)
        controller.may_answer.set()
        await _until_answered(changes)
        assert controller.numbers() == [[0, 1, 2], [3, 4]]
        assert all(owner.outcomes == [(0, 1)] for owner in owners)
        [topic] = controller.asked[0].topics
        assert (controller.asked[0].broker_id, controller.asked[0].broker_epoch) == (0, 77)
        first = topic.partitions[0]
        assert (first.leader_epoch, first.partition_epoch) == (4, 9)
        assert [each.broker_epoch for each in first.new_isr_with_epochs] == [100, 101]

    _run(scenario())


def test_a_request_that_fails_is_sent_again_with_the_epoch_of_the_day() -> None:
    async def scenario() -> None:
        controller = _Controller()
        controller.faults = [
            KafkaError(ErrorCode.NOT_CONTROLLER, "A controller is being elected."),
            ErrorCode.STALE_BROKER_EPOCH,
            KafkaError(ErrorCode.REQUEST_TIMED_OUT, "It took too long."),
        ]
        epochs = iter([5, 5, 6, 6])
        changes = _changes(controller, lambda: next(epochs))
        owner = _Owner(0)
        owner.propose(changes)
        await _until_answered(changes)
        assert owner.outcomes == [(0, 1)]
        assert [request.broker_epoch for request in controller.asked] == [5, 5, 6, 6]

    _run(scenario())


def test_each_partition_hears_its_own_answer() -> None:
    async def scenario() -> None:
        controller = _Controller()
        controller.codes = {1: ErrorCode.INELIGIBLE_REPLICA, 2: ErrorCode.UNKNOWN_SERVER_ERROR}
        changes = _changes(controller)
        owners = [_Owner(number) for number in range(3)]
        owners[2].asks_again = True
        for owner in owners:
            owner.propose(changes)
        while len(owners[2].outcomes) < 3:
            await asyncio.sleep(0.01)
        controller.codes.clear()
        await _until_answered(changes)
        assert owners[0].outcomes == [(0, 1)]
        assert owners[1].outcomes == [ErrorCode.INELIGIBLE_REPLICA]
        assert owners[2].outcomes == [ErrorCode.UNKNOWN_SERVER_ERROR] * 3 + [(0, 1)]
        assert controller.numbers() == [[0, 1, 2], [2], [2], [2]]
        assert changes.failed_isr_updates == 4

    _run(scenario())


def test_what_has_become_pointless_is_not_asked_any_more() -> None:
    async def scenario() -> None:
        controller = _Controller()
        controller.faults = [ErrorCode.NOT_CONTROLLER]
        changes = _changes(controller)
        owners = [_Owner(0), _Owner(1)]
        for owner in owners:
            owner.propose(changes)
        await controller.is_busy.wait()
        owners[0].proposal = None  # An image has said what holds.
        await _until_answered(changes)
        assert controller.numbers() == [[0, 1], [1]]
        assert owners[0].outcomes == []

    _run(scenario())


def test_a_newer_proposal_is_not_settled_by_the_answer_to_the_one_before() -> None:
    async def scenario() -> None:
        controller = _Controller()
        controller.may_answer.clear()
        changes = _changes(controller)
        owner = _Owner(0)
        owner.propose(changes, (0, 1))
        await controller.is_busy.wait()
        owner.propose(changes, (0, 2))
        controller.may_answer.set()
        await _until_answered(changes)
        assert owner.outcomes == [(0, 2)]
        assert len(controller.asked) == 2

    _run(scenario())


def test_closing_ends_what_is_under_way() -> None:
    async def scenario() -> None:
        controller = _Controller()
        controller.may_answer.clear()
        changes = _changes(controller)
        owner = _Owner(0)
        owner.propose(changes)
        await controller.is_busy.wait()
        await changes.close()
        owner.propose(changes)
        assert len(changes) == 0 and owner.outcomes == []

    _run(scenario())


def test_changes_are_counted_by_what_they_did() -> None:
    changes, orders = _changes(_Controller()), TopicPartition("orders", 0)
    changes.changed(orders, (0, 1, 2), (0, 1))
    changes.changed(orders, (0, 1), (0, 1, 2))
    changes.changed(orders, (0, 1), (0, 2))
    assert (changes.isr_shrinks, changes.isr_expands) == (2, 2)


def test_all_that_changes_at_a_time_is_one_line(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)

    class Owner(_Owner):
        def accepted(self, proposal: IsrProposal, answer: ResponsePartitionData) -> None:
            super().accepted(proposal, answer)
            changes.changed(self.topic_partition, (0, 1, 2), answer.isr)

    async def scenario() -> None:
        for number in range(200):
            Owner(number).propose(changes, (0, 1))
        Owner(200).propose(changes, (0, 1, 2, 3))
        await asyncio.sleep(1.0)
        await changes.close()

    changes = _changes(_Controller())
    _run(scenario())
    names = ", ".join(f"orders-{number}" for number in range(10))
    assert caplog.messages == [
        f"The in-sync replicas of 200 partitions are now without 2: {names} and 190 more.",
        "The in-sync replicas of 1 partition are now with 3: orders-200.",
    ]
