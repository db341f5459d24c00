"""Asking the controller for other in-sync replicas, for all partitions that a broker leads.

A leader's proposal is kept here until it is answered or has become pointless. Proposals that come
while a request is under way go with the next one, so a follower that dies costs one request and not
a thousand. A request that fails, or finds no controller, is sent again after a pause, for as long
as it takes: the state that a proposal names makes it safe to repeat, because the controller takes
it at most once.

What an answer means is for the partition to say, see `in_sync_replicas`; this is the way there.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final, NamedTuple, Protocol

from headwater.base.background_tasks import BackgroundTasks
from headwater.base.counted import counted
from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import TopicPartition
from headwater.base.printable import listed
from headwater.replication.leading.isr_state import IsrProposal
from headwater.wire.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    BrokerState,
    RequestPartitionData,
    RequestTopicData,
    ResponsePartitionData,
)
from headwater.wire.schema import Message

_logger = logging.getLogger(__name__)

#: Partitions of one request; what is more waits for the next.
_BATCH_MAX: Final = 1_000
_TIMEOUT_S: Final = 10.0
_PAUSE_MIN_S: Final = 0.05
_PAUSE_MAX_S: Final = 1.0

#: Sends a request to the controller, within so many seconds; raises `KafkaError` if that fails.
AskController = Callable[[Message, float], Awaitable[Any]]


class IsrOwner(Protocol):
    """Who made a proposal."""

    @property
    def topic_partition(self) -> TopicPartition: ...

    @property
    def topic_id(self) -> uuid.UUID: ...

    def is_waiting_for(self, proposal: IsrProposal) -> bool:
        """Whether an answer still matters."""
        ...

    def accepted(self, proposal: IsrProposal, answer: ResponsePartitionData) -> None: ...

    def refused(self, proposal: IsrProposal, code: ErrorCode) -> bool:
        """Returns whether to ask again."""
        ...


#: The brokers that left an ISR, and those that joined it.
_Movement = tuple[tuple[int, ...], tuple[int, ...]]


class _Wanted(NamedTuple):
    owner: IsrOwner
    proposal: IsrProposal


class IsrChanges:
    """The proposals of one broker; its owner is the event loop."""

    def __init__(
        self,
        ask: AskController,
        *,
        node_id: int,
        broker_epoch: Callable[[], int],
        tasks: BackgroundTasks,
    ) -> None:
        self._ask = ask
        self._node_id = node_id
        self._broker_epoch = broker_epoch
        self._tasks = tasks
        self._wanted: dict[TopicPartition, _Wanted] = {}
        #: What has changed and is not in the log yet: by who left and who joined, of which.
        self._untold: dict[_Movement, list[TopicPartition]] = {}
        self._task: asyncio.Task[None] | None = None
        self._is_closed = False
        #: Plain counters, which metrics read when somebody asks.
        self.isr_shrinks = 0
        self.isr_expands = 0
        self.failed_isr_updates = 0

    def __len__(self) -> int:
        """How many proposals have no answer yet."""
        return len(self._wanted)

    def submit(self, owner: IsrOwner, proposal: IsrProposal) -> None:
        """Ask for this, in place of what was asked for the same partition before."""
        if self._is_closed:
            return
        known = self._wanted.get(owner.topic_partition)
        if known is None or known.proposal is not proposal:
            self._wanted[owner.topic_partition] = _Wanted(owner, proposal)
        if self._task is None:
            self._task = self._tasks.start("ISR changes", self._run())

    async def close(self) -> None:
        """The broker stops: nothing more is asked."""
        self._is_closed = True
        self._wanted.clear()
        task = self._task
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    def changed(
        self, partition: TopicPartition, before: Iterable[int], after: Iterable[int]
    ) -> None:
        """An ISR has changed by the wish of its leader."""
        old, new = set(before), set(after)
        self.isr_shrinks += bool(old - new)
        self.isr_expands += bool(new - old)
        if old != new:
            movement = (tuple(sorted(old - new)), tuple(sorted(new - old)))
            self._untold.setdefault(movement, []).append(partition)

    def _tell(self) -> None:
        """A line for each kind of change, however many partitions it was."""
        untold, self._untold = self._untold, {}
        for (left, joined), partitions in untold.items():
            told = [f"without {listed(left)}"] if left else []
            if joined:
                told.append(f"with {listed(joined)}")
            _logger.info(
                "The in-sync replicas of %s are now %s: %s.",
                counted(len(partitions), "partition"),
                " and ".join(told),
                listed(partitions),
            )

    async def _run(self) -> None:
        pause_s = _PAUSE_MIN_S
        try:
            while True:
                # What else this turn of the loop brings goes along.
                await asyncio.sleep(0)
                batch = self._take_batch()
                if not batch:
                    return
                is_settled = await self._send(batch)
                self._tell()
                if is_settled:
                    pause_s = _PAUSE_MIN_S
                else:
                    await asyncio.sleep(pause_s)
                    pause_s = min(pause_s * 2, _PAUSE_MAX_S)
        finally:
            self._tell()
            self._task = None

    def _take_batch(self) -> list[_Wanted]:
        for key, wanted in list(self._wanted.items()):
            if not wanted.owner.is_waiting_for(wanted.proposal):
                del self._wanted[key]
        return list(self._wanted.values())[:_BATCH_MAX]

    async def _send(self, batch: list[_Wanted]) -> bool:
        """Ask once; returns whether everything in the batch is settled."""
        request = AlterPartitionRequest(
            broker_id=self._node_id, broker_epoch=self._broker_epoch(), topics=_topics(batch)
        )
        try:
            response: AlterPartitionResponse = await self._ask(request, _TIMEOUT_S)
        except (KafkaError, OSError, TimeoutError) as error:
            _logger.debug("the controller could not be asked for in-sync replicas: %s", error)
            return False
        if response.error_code != ErrorCode.NONE:
            code = ErrorCode.from_wire(response.error_code)
            _logger.debug("the controller refused a change of in-sync replicas: %s", code.name)
            return False
        answers = {
            (topic.topic_id, each.partition_index): each
            for topic in response.topics
            for each in topic.partitions
        }
        is_settled = True
        for wanted in batch:
            key = wanted.owner.topic_partition
            if self._wanted.get(key) is not wanted:
                continue  # Something else is wanted by now.
            answer = answers.get((wanted.owner.topic_id, key.partition))
            if answer is None or not self._settle(wanted, answer):
                is_settled = False
            elif self._wanted.get(key) is wanted:
                del self._wanted[key]
        return is_settled

    def _settle(self, wanted: _Wanted, answer: ResponsePartitionData) -> bool:
        owner, proposal = wanted
        if not owner.is_waiting_for(proposal):
            return True
        if answer.error_code == ErrorCode.NONE:
            owner.accepted(proposal, answer)
            return True
        self.failed_isr_updates += 1
        return not owner.refused(proposal, ErrorCode.from_wire(answer.error_code))


def _topics(batch: list[_Wanted]) -> list[RequestTopicData]:
    topics: dict[uuid.UUID, RequestTopicData] = {}
    for owner, proposal in batch:
        topic = topics.setdefault(owner.topic_id, RequestTopicData(topic_id=owner.topic_id))
        topic.partitions.append(
            RequestPartitionData(
                partition_index=owner.topic_partition.partition,
                leader_epoch=proposal.leader_epoch,
                partition_epoch=proposal.partition_epoch,
                new_isr_with_epochs=[
                    BrokerState(broker_id=broker_id, broker_epoch=broker_epoch)
                    for broker_id, broker_epoch in zip(
                        proposal.isr, proposal.broker_epochs, strict=True
                    )
                ],
            )
        )
    return list(topics.values())
