"""Members that tell a coordinator more about themselves than it wants to keep."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

from headwater.base.errors import ErrorCode
from headwater.testing.broker_process import wait_until
from headwater.wire.messages.find_coordinator import FindCoordinatorRequest
from headwater.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from tests.support.brokers.hostile_broker import MEBIBYTE, attacked_broker
from tests.support.other_clients.raw import RawConnection
from tests.support.worlds.classic_world import ClassicWorld, code
from tests.support.worlds.consumer_world import Client, ConsumerWorld

SMALL = {"group.member.metadata.max.bytes": "1000", "group.metadata.max.bytes": "2500"}
JOINER_COUNT = 12
#: Each of the requests is read into memory as a whole, and some at once.
KEPT_BYTES_MAX = 150 * MEBIBYTE
#: With the broker itself.
RESIDENT_BYTES_MAX = 300 * MEBIBYTE


def test_a_dozen_joins_of_forty_megabytes_leave_nothing_behind(tmp_path: Path) -> None:
    metadata = bytes(40 * MEBIBYTE)
    settings = {"group.initial.rebalance.delay.ms": "0"}
    with ExitStack() as stack:
        broker = stack.enter_context(
            attacked_broker(tmp_path, settings=settings, resident_bytes_max=RESIDENT_BYTES_MAX)
        )

        def joined_with(connection: RawConnection, group_id: str, content: bytes) -> int:
            request = JoinGroupRequest(
                group_id=group_id,
                session_timeout_ms=1_800_000,
                rebalance_timeout_ms=1_800_000,
                protocol_type="consumer",
                protocols=[JoinGroupRequestProtocol(name="range", metadata=content)],
            )
            answer = connection.ask(request, 3)
            found: int = answer.error_code
            return found

        with RawConnection(broker.bootstrap) as connection:
            find = FindCoordinatorRequest(key="small")
            wait_until(lambda: connection.ask(find, 2).error_code == 0, "there is a coordinator")
            wait_until(lambda: joined_with(connection, "small", b"") == 0, "it is there")
        before = broker.resident_bytes()
        for number in range(JOINER_COUNT):
            connection = stack.enter_context(RawConnection(broker.bootstrap))
            answered = joined_with(connection, f"group-{number}", metadata)
            assert answered == ErrorCode.INVALID_REQUEST
        assert broker.resident_bytes() - before < KEPT_BYTES_MAX


def test_the_members_of_a_classic_group_share_what_it_may_keep() -> None:
    world = ClassicWorld(SMALL)
    assert code(world.join(protocols={"range": bytes(1_000)})) == ErrorCode.INVALID_REQUEST
    members = []
    for _ in range(2):
        member_id, _ = world.enter(protocols={"range": bytes(990)})
        members.append(member_id)
    assert code(world.join(protocols={"range": bytes(600)})) == ErrorCode.INVALID_REQUEST
    assert code(world.join(protocols={"range": bytes(500)})) == ErrorCode.MEMBER_ID_REQUIRED
    # Who joins again brings it instead of what it had, not on top of it.
    world.join(members[0], protocols={"range": bytes(980)})
    assert world.group().metadata_bytes == 980 + 990 + 2 * len("range")
    world.leave(members[1])
    assert world.group().metadata_bytes == 980 + len("range")


def test_assignments_are_bounded_as_subscriptions_are() -> None:
    world = ClassicWorld({**SMALL, "group.initial.rebalance.delay.ms": "0"})
    anna, _ = world.enter()
    refused = world.sync(anna, {anna: bytes(2_501)})
    assert code(refused) == ErrorCode.INVALID_REQUEST
    assert world.state() == "CompletingRebalance"
    assert world.sync(anna, {anna: bytes(2_500)}).get().assignment == bytes(2_500)
    world.check_replay()


def test_the_members_of_a_consumer_group_share_what_it_may_keep() -> None:
    world = ConsumerWorld(settings=SMALL)
    long_names = [f"{number}" * 240 for number in range(4)]
    clients = [Client(world, f"m{number}", topics=long_names) for number in range(3)]
    clients[0].join()
    clients[1].join()
    assert world.refusal(clients[2].complete_request()) == ErrorCode.INVALID_REQUEST
    assert "m2" not in world.group().members
    regex = clients[0].request(subscribed_topic_regex="a" * 1_001)
    assert world.refusal(regex) == ErrorCode.INVALID_REQUEST
    clients[0].subscribe([])
    clients[2].join()
    world.check_replay()
