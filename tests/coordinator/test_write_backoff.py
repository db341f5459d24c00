"""A coordinator that cannot write: clients that ask again at once do not keep it busy."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest

from headwater.base.errors import ErrorCode, KafkaError
from headwater.broker.topics.coordinator_topics import CoordinatorKind
from headwater.replication.partition.partition import Partition
from headwater.sim.broker_world import BrokerWorld
from headwater.sim.clients.broker_link import BrokerLink
from headwater.sim.clients.coordinator_lookup import find_coordinator
from headwater.storage.partition_log import AppendResult
from headwater.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from headwater.wire.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from headwater.wire.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)

GROUP = "crowd"
MEMBER_COUNT = 3
TROUBLE_S = 60
#: Each failure waits twice as long as the one before, up to five seconds.
ATTEMPTS_MAX = 150
RECOVERY_S = 20


class Impatient:
    """A member that takes no rest after an error."""

    def __init__(self, link: BrokerLink, member_id: str) -> None:
        self.link = link
        self.member_id = member_id
        #: Attempts to become a settled member, and whether the last one succeeded.
        self.attempts = 0
        self.is_settled = False

    async def be_classic(self) -> None:
        self.member_id = ""
        while True:
            if await self._join_and_sync():
                await asyncio.sleep(1)

    async def _join_and_sync(self) -> bool:
        self.attempts += 1
        joined = await self.link.ask(
            JoinGroupRequest(
                group_id=GROUP,
                member_id=self.member_id,
                session_timeout_ms=30_000,
                rebalance_timeout_ms=10_000,
                protocol_type="consumer",
                protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
            ),
            JoinGroupResponse,
            version=9,
            timeout_s=30,
        )
        if joined.error_code == ErrorCode.UNKNOWN_MEMBER_ID:
            self.member_id = ""
        elif joined.member_id:
            self.member_id = joined.member_id
        if joined.error_code:
            self.is_settled = False
            return False
        synced = await self.link.ask(
            SyncGroupRequest(
                group_id=GROUP,
                member_id=self.member_id,
                generation_id=joined.generation_id,
                assignments=[
                    SyncGroupRequestAssignment(member_id=each.member_id, assignment=b"all")
                    for each in joined.members
                ],
            ),
            SyncGroupResponse,
            version=5,
            timeout_s=30,
        )
        self.is_settled = synced.error_code == ErrorCode.NONE
        return self.is_settled

    async def be_of_the_consumer_protocol(self) -> None:
        epoch = 0
        while True:
            self.attempts += 1
            request = ConsumerGroupHeartbeatRequest(
                group_id=GROUP, member_id=self.member_id, member_epoch=epoch
            )
            if epoch == 0:
                request.rebalance_timeout_ms = 10_000
                request.subscribed_topic_names = ["events"]
                request.topic_partitions = []
            answer = await self.link.ask(
                request, ConsumerGroupHeartbeatResponse, version=1, timeout_s=30
            )
            self.is_settled = answer.error_code == ErrorCode.NONE
            if self.is_settled:
                epoch = answer.member_epoch
                await asyncio.sleep(1)
            else:
                epoch = 0


Life = Callable[[Impatient], Coroutine[Any, Any, None]]


@pytest.fixture
def world() -> Iterator[BrokerWorld]:
    made = BrokerWorld(1, {"offsets.topic.num.partitions": "1"})
    yield made
    made.check_no_failure()
    made.close()


class InSyncReplicas:
    """Whether there are enough of them for the coordinator to write."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.are_enough = True
        append = Partition.append

        def append_if_enough(partition: Partition, *arguments: Any, **named: Any) -> AppendResult:
            if not self.are_enough:
                raise KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS, "There are too few.")
            return append(partition, *arguments, **named)

        monkeypatch.setattr(Partition, "append", append_if_enough)


@pytest.mark.parametrize("life", [Impatient.be_classic, Impatient.be_of_the_consumer_protocol])
@pytest.mark.parametrize("is_founded", [True, False])
def test_attempts_become_rare_and_end_with_success(
    world: BrokerWorld, life: Life, is_founded: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    replicas = InSyncReplicas(monkeypatch)

    async def run() -> None:
        assert await world.start_broker()
        process, link = world.start_client("anybody")
        await process.run(
            world.loop.create_task, find_coordinator(link, CoordinatorKind.GROUP, GROUP)
        )
        members: list[Impatient] = []
        tasks: list[asyncio.Task[None]] = []

        def start(number: int) -> None:
            process, link = world.start_client("member")
            member = Impatient(link, f"member-{number}")
            members.append(member)
            tasks.append(process.run(world.loop.create_task, life(member)))

        if is_founded:
            start(0)
            await asyncio.sleep(RECOVERY_S)
            assert members[0].is_settled
        replicas.are_enough = False
        before = sum(each.attempts for each in members)
        for number in range(len(members), MEMBER_COUNT):
            start(number)
        await asyncio.sleep(TROUBLE_S)
        assert any(not each.is_settled for each in members)
        assert sum(each.attempts for each in members) - before <= ATTEMPTS_MAX
        replicas.are_enough = True
        # Each joins anew every second, so that not all are settled at every moment.
        async with asyncio.timeout(RECOVERY_S):
            while not all(each.is_settled for each in members):
                await asyncio.sleep(0.05)
        for task in tasks:
            task.cancel()

    world.run(run())
