"""Requests of members of classic groups, as handlers get them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn, cast

from headwater.base.errors import ErrorCode, KafkaError
from headwater.coordinator.group.shard import GroupShard
from headwater.coordinator.runtime import CoordinatorRuntime
from headwater.wire.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
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
from tests.support.brokers.handler_broker import HandlerBroker, run_with_broker
from tests.support.worlds.classic_world import subscription

GROUP = "orders"
#: Few partitions, so that a broker starts quickly.
SETTINGS = {"offsets.topic.num.partitions": "3"}
_MEMBER_ID_FIRST_SINCE = 4


def run_with_coordinator(
    directory: Path, scenario: Callable[[HandlerBroker], Awaitable[None]]
) -> None:
    """Run a scenario with a broker that coordinates groups."""

    async def run(broker: HandlerBroker) -> None:
        request = FindCoordinatorRequest(key_type=0, coordinator_keys=[GROUP])
        found = await broker.ask(request, FindCoordinatorResponse)
        assert [each.error_code for each in found.coordinators] == [ErrorCode.NONE]
        await scenario(broker)

    run_with_broker(directory, run, SETTINGS)


class LoadingGroups:
    """What handlers see of a coordinator whose groups are still being loaded."""

    is_loading = True

    async def ask(self, key: str, operation: object) -> NoReturn:
        raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, f"{key} is being loaded.")


@contextmanager
def loading(broker: HandlerBroker) -> Iterator[None]:
    """Let the broker's groups be loading for a while."""
    groups = broker.context.groups
    broker.context.groups = cast(CoordinatorRuntime[GroupShard], LoadingGroups())
    try:
        yield
    finally:
        broker.context.groups = groups


def join_request(
    member_id: str = "", *, group_id: str = GROUP, instance_id: str | None = None
) -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id=group_id,
        member_id=member_id,
        group_instance_id=instance_id,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=60_000,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=subscription("events"))],
    )


async def join(broker: HandlerBroker, version: int, *, group_id: str = GROUP) -> JoinGroupResponse:
    """Join as a dynamic member that is the only one, in as many steps as the version wants."""
    request = join_request(group_id=group_id)
    if version >= _MEMBER_ID_FIRST_SINCE:
        first = await broker.ask(request, JoinGroupResponse, version=version)
        assert first.error_code == ErrorCode.MEMBER_ID_REQUIRED
        request.member_id = first.member_id
    return await broker.ask(request, JoinGroupResponse, version=version)


def sync_request(
    joined: JoinGroupResponse, assignment: bytes = b"partitions", *, group_id: str = GROUP
) -> SyncGroupRequest:
    """The request of a leader that is alone."""
    return SyncGroupRequest(
        group_id=group_id,
        member_id=joined.member_id,
        generation_id=joined.generation_id,
        assignments=[SyncGroupRequestAssignment(member_id=joined.member_id, assignment=assignment)],
    )


async def stable_member(broker: HandlerBroker, *, group_id: str = GROUP) -> JoinGroupResponse:
    """The only member of a stable group."""
    joined = await join(broker, 9, group_id=group_id)
    synced = await broker.ask(sync_request(joined, group_id=group_id), SyncGroupResponse)
    assert synced.error_code == ErrorCode.NONE
    return joined
