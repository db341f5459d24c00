"""Heartbeat as clients see it, in each version."""

from pathlib import Path

from headwater.base.errors import ErrorCode
from headwater.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from tests.support.brokers.handler_broker import HandlerBroker
from tests.support.values.group_requests import GROUP, loading, run_with_coordinator, stable_member


async def beat(
    broker: HandlerBroker,
    version: int,
    member_id: str,
    *,
    generation: int = 1,
    group_id: str = GROUP,
    instance_id: str | None = None,
) -> int:
    request = HeartbeatRequest(
        group_id=group_id,
        member_id=member_id,
        generation_id=generation,
        group_instance_id=instance_id,
    )
    return (await broker.ask(request, HeartbeatResponse, version=version)).error_code


def test_every_version(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        member_id = (await stable_member(broker)).member_id
        for version in range(5):
            assert await beat(broker, version, member_id) == ErrorCode.NONE
            stale = await beat(broker, version, member_id, generation=0)
            assert stale == ErrorCode.ILLEGAL_GENERATION
            assert await beat(broker, version, "nobody") == ErrorCode.UNKNOWN_MEMBER_ID
            unnamed = await beat(broker, version, member_id, group_id="")
            assert unnamed == ErrorCode.INVALID_GROUP_ID
            missing = await beat(broker, version, member_id, group_id="missing")
            assert missing == ErrorCode.UNKNOWN_MEMBER_ID
        for version in (3, 4):
            code = await beat(broker, version, member_id, instance_id="first")
            assert code == ErrorCode.UNKNOWN_MEMBER_ID

    run_with_coordinator(tmp_path, scenario)


def test_a_group_survives_a_restart_of_its_broker(tmp_path: Path) -> None:
    member_ids: list[str] = []

    async def before(broker: HandlerBroker) -> None:
        member_ids.append((await stable_member(broker)).member_id)

    async def after(broker: HandlerBroker) -> None:
        await broker.context.groups.loaded()
        assert await beat(broker, 4, member_ids[0]) == ErrorCode.NONE

    run_with_coordinator(tmp_path, before)
    run_with_coordinator(tmp_path, after)


def test_while_groups_are_loaded_heartbeats_are_taken_for_granted(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        with loading(broker):
            assert await beat(broker, 4, "anybody") == ErrorCode.NONE
        assert await beat(broker, 4, "anybody") == ErrorCode.UNKNOWN_MEMBER_ID

    run_with_coordinator(tmp_path, scenario)
