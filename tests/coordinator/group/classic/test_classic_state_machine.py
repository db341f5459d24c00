"""Classic groups under random interleavings of everything that can happen to them.

Clients join, ask for assignments, send heartbeats, leave and forget who they are; time passes;
writes are slow, fail, or are lost; coordinators are replaced. Whatever happens:

- a partition has one owner in each generation, and generations of owners never go back;
- one member at most is told to assign in a generation;
- every request is answered, once;
- all members of a stable group have assignments, and none can stay for ever without a sign of life;
- a coordinator that takes over knows what this one has stored.
"""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from headwater.base.errors import ErrorCode
from headwater.coordinator.group.classic.group import ClassicGroup
from headwater.coordinator.group.classic.state import ClassicState
from headwater.coordinator.group.classic.stored.record import read_group_metadata_value
from headwater.wire.messages.join_group import JoinGroupResponse
from headwater.wire.messages.leave_group import MemberIdentity
from headwater.wire.messages.sync_group import SyncGroupResponse
from tests.support.tiers import rounds
from tests.support.worlds.classic_client import LOST_IDENTITY, Client, value_of
from tests.support.worlds.classic_world import GROUP, MOVED, NOT_WRITTEN, ClassicWorld
from tests.support.worlds.shard_world import Answer

PARTITIONS = range(5)
STATIC_SINCE = 5
#: Two dynamic members, and two places of static ones, the last of which is claimed by two.
INSTANCES = (None, None, "first", "second", "second")
CLIENTS = st.integers(0, len(INSTANCES) - 1)
LIVE_CLIENTS = {0, 1, 2, 3}
FENCED_CLIENT = 4
#: A second each: longer than any timeout of members that are gone.
TURNS_MAX = 700
VERSIONS = st.sampled_from((3, 4, 5, 8, 9))
#: Below and above the session, the rebalance timeout and the time that new members may wait.
TIMES_MS = st.sampled_from((1, 3_000, 6_000, 9_999, 30_000, 60_000, 301_000))
PROTOCOLS = st.sampled_from((("range",), ("range", "sticky"), ("sticky", "range")))


class ClassicGroups(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.world = ClassicWorld(
            {
                "group.initial.rebalance.delay.ms": "2000",
                "group.max.size": "4",
                "offsets.retention.check.interval.ms": str(2**40),
            }
        )
        self.clients = [Client(instance) for instance in INSTANCES]
        self.answers: list[Answer[JoinGroupResponse] | Answer[SyncGroupResponse]] = []
        self.owners: dict[int, dict[int, str]] = {}
        #: Who was told to assign, by the coordinator's number and the generation.
        self.assigners: dict[tuple[int, int], str] = {}
        self.coordinator_number = 0
        self.newest_generation = 0

    # -- what happens ----------------------------------------------------------------------------

    @rule(number=CLIENTS, version=VERSIONS, protocols=PROTOCOLS)
    def join(self, number: int, version: int, protocols: tuple[str, ...]) -> None:
        client = self.clients[number]
        client.roster, client.generation = None, -1
        if client.instance is not None:
            version = max(version, STATIC_SINCE)
        client.joining = self.world.join(
            client.member_id, instance=client.instance, protocols=protocols, version=version
        )
        self.answers.append(client.joining)

    @rule(number=CLIENTS)
    def sync(self, number: int) -> None:
        client = self.clients[number]
        assignments = {}
        if client.roster is not None:
            assignments = {
                member_id: b",".join(
                    b"%d" % partition
                    for partition in PARTITIONS
                    if partition % len(client.roster) == place
                )
                or b"none"
                for place, member_id in enumerate(client.roster)
            }
        answer = self.world.sync(
            client.member_id,
            assignments,
            generation=client.generation,
            instance=client.instance,
        )
        client.syncing = client.generation, answer
        self.answers.append(answer)

    @rule(numbers=st.sets(CLIENTS, min_size=1), turns=st.integers(1, 9), version=VERSIONS)
    def do_as_told(self, numbers: set[int], turns: int, version: int) -> None:
        """Clients do what the protocol wants of them, which leads to stable groups."""
        for _ in range(turns):
            for number in sorted(numbers):
                self.clients_hear_what_is_consistent()
                client = self.clients[number]
                if client.joining is not None or client.syncing is not None:
                    continue
                if client.generation < 0:
                    self.join(number, version, ("range", "sticky"))
                elif client.needs_assignment:
                    self.sync(number)
                else:
                    self.heartbeat(number)
            self.world.advance(1_000)

    @initialize(is_wanted=st.booleans())
    def begin_settled(self, is_wanted: bool) -> None:
        if is_wanted:
            self.settle()

    @rule()
    def settle(self) -> None:
        """All goes well for a while: then the group has to become stable, with all who want it."""
        self.speed_up()
        self.world.fail_next = None
        self.clients[FENCED_CLIENT] = Client(INSTANCES[FENCED_CLIENT])
        for _ in range(TURNS_MAX):
            self.do_as_told(LIVE_CLIENTS, 1, 9)
            self.clients_hear_what_is_consistent()
            if all(self.clients[number].is_content for number in LIVE_CLIENTS):
                break
        group = self.world.group()
        assert group.state is ClassicState.STABLE
        assert set(group.members) >= {self.clients[each].member_id for each in LIVE_CLIENTS}

    @rule(number=CLIENTS)
    def heartbeat(self, number: int) -> None:
        client = self.clients[number]
        code = self.world.heartbeat(
            client.member_id, generation=client.generation, instance=client.instance
        )
        if code in LOST_IDENTITY:
            client.forget()
        elif code is not ErrorCode.NONE:
            client.generation = -1

    @rule(number=CLIENTS)
    def leave(self, number: int) -> None:
        client = self.clients[number]
        self.world.leave(
            MemberIdentity(member_id=client.member_id, group_instance_id=client.instance)
        )
        client.forget()

    @rule(number=CLIENTS)
    def restart_client(self, number: int) -> None:
        self.clients[number] = Client(INSTANCES[number])

    @rule(ms=TIMES_MS)
    def pass_time(self, ms: int) -> None:
        self.world.advance(ms)

    @rule()
    def slow_down(self) -> None:
        self.world.hold = True

    @rule()
    def speed_up(self) -> None:
        self.world.hold = False
        self.world.release()

    @precondition(lambda self: self.world.hold)
    @rule()
    def lose_writes(self) -> None:
        self.world.hold = False
        self.world.lose(NOT_WRITTEN)

    @rule()
    def refuse_next_write(self) -> None:
        self.world.fail_next = NOT_WRITTEN

    @rule(late=st.booleans())
    def replace_coordinator(self, late: bool) -> None:
        """Writes of the old one may be found out to be safe, or lost, before or after."""
        if late:
            self.world.fail_over()
            self.world.lose(MOVED)
        else:
            self.world.lose(MOVED)
            self.world.fail_over()
        self.world.fail_next = None
        self.coordinator_number += 1
        self.newest_generation = 0

    # -- what holds ------------------------------------------------------------------------------

    @invariant()
    def clients_hear_what_is_consistent(self) -> None:
        for client in self.clients:
            if client.joining is not None and client.joining.is_given:
                joined, client.joining = value_of(client, client.joining), None
                if joined is not None:
                    self._joined(client, joined)
            if client.syncing is not None and client.syncing[1].is_given:
                generation, answer = client.syncing
                synced, client.syncing = value_of(client, answer), None
                if synced is not None:
                    self._owns(client, generation, synced.assignment)

    def _joined(self, client: Client, value: JoinGroupResponse) -> None:
        client.member_id = value.member_id
        if value.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            return
        client.generation = value.generation_id
        client.needs_assignment = True
        if value.leader == value.member_id and not value.skip_assignment:
            key = self.coordinator_number, value.generation_id
            assert self.assigners.setdefault(key, value.member_id) == value.member_id
            client.roster = [member.member_id for member in value.members]
            assert value.member_id in client.roster

    def _owns(self, client: Client, generation: int, assignment: bytes) -> None:
        assert assignment
        client.needs_assignment = False
        assert generation >= max(self.owners, default=0)
        assert (generation, client.owner, assignment) in self._written_assignments()
        owners = self.owners.setdefault(generation, {})
        for text in assignment.split(b",") if assignment != b"none" else ():
            assert owners.setdefault(int(text), client.owner) == client.owner

    def _written_assignments(self) -> set[tuple[int, str, bytes]]:
        """What stands in the topic: generation, owner, and what the owner gets."""
        return {
            (group.generation, member.group_instance_id or member.member_id, member.assignment)
            for written in self.world.topic
            if written.record is not None and written.record.value is not None
            for group in [read_group_metadata_value(written.record.value)]
            for member in group.members
        }

    @invariant()
    def the_next_coordinator_would_know(self) -> None:
        self.world.check_replay()

    @invariant()
    def the_group_is_in_order(self) -> None:
        group = self.world.shard.groups.find_of(ClassicGroup, GROUP)
        if group is None:
            return
        assert group.generation >= self.newest_generation
        self.newest_generation = group.generation
        ids = set(group.members)
        if group.state is ClassicState.EMPTY:
            assert not ids
        if group.state in (ClassicState.STABLE, ClassicState.COMPLETING_REBALANCE):
            assert ids
            assert group.protocol_name is not None
        assert (group.leader_id in ids) if ids else (group.leader_id is None)
        assert not ids & group.pending_ids
        assert group.unsynced_ids <= ids
        assert group.newcomer_ids <= ids
        assert group.static_ids == {
            member.group_instance_id: member.member_id
            for member in group.members.values()
            if member.group_instance_id is not None
        }
        for name in ("range", "sticky") if ids else ():
            is_supported = all(name in member.protocols for member in group.members.values())
            assert group.supports("consumer", {name: b""}) == is_supported
        for member_id, member in group.members.items():
            waits = member_id in group.joining or member_id in group.syncing
            assert waits or self._has_session(member_id)
            if group.state is ClassicState.STABLE:
                assert member.assignment
        assert all(self._has_session(member_id) for member_id in group.pending_ids)
        if group.state is not ClassicState.COMPLETING_REBALANCE:
            assert len(group.syncing) == 0
        if group.state is ClassicState.PREPARING_REBALANCE:
            assert self.world.timers.is_scheduled(("classic join", GROUP))

    def _has_session(self, member_id: str) -> bool:
        return self.world.timers.is_scheduled(("classic session", GROUP, member_id))

    def teardown(self) -> None:
        self.settle()
        self.world.shard.close(MOVED)
        assert all(answer.is_given for answer in self.answers)


ClassicGroups.TestCase.settings = settings(
    max_examples=rounds(60, 800), stateful_step_count=rounds(40, 80), deadline=None
)
TestClassicGroups = ClassicGroups.TestCase
