"""A group of the classic protocol: its members take turns to agree, and one of them assigns.

Records tell what a group was when it last was stable or empty, and a coordinator that takes over
starts from there. Everything in between (who has joined again, whose answers are parked, what is
voted on) is soft: it changes as requests come in, and is forgotten with the coordinator. So the
fields are the live group, and `stored` is what the topic says.

The steps of the protocol work on a group through its methods, which keep its indexes in order and
lose no parked answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from headwater.base.checks import check
from headwater.base.errors import ErrorCode, KafkaError
from headwater.coordinator.group.classic.errors import (
    fenced_member,
    illegal_generation,
    rebalance_in_progress,
    unknown_member,
)
from headwater.coordinator.group.classic.member import ClassicMember
from headwater.coordinator.group.classic.parked import ParkedMembers
from headwater.coordinator.group.classic.rebalancing.strategy_vote import elect_strategy
from headwater.coordinator.group.classic.state import TRANSITIONS, ClassicState
from headwater.coordinator.group.classic.stored.record import group_metadata_tombstone
from headwater.coordinator.group.classic.stored.subscription import (
    CONSUMER_PROTOCOL_TYPE,
    topics_of_all,
)
from headwater.coordinator.group.group import Group, GroupKind
from headwater.coordinator.stored_record import StoredRecord
from headwater.wire.messages.join_group import JoinGroupResponse
from headwater.wire.messages.sync_group import SyncGroupResponse


class ClassicGroup(Group):
    kind = GroupKind.CLASSIC

    def __init__(
        self,
        group_id: str,
        *,
        state: ClassicState = ClassicState.EMPTY,
        generation: int = 0,
        protocol_type: str = "",
        protocol_name: str | None = None,
        leader_id: str | None = None,
        state_since_ms: int | None = None,
        members: Iterable[ClassicMember] = (),
    ) -> None:
        super().__init__(group_id)
        self.state = state
        self.previous_state = ClassicState.DEAD
        self.generation = generation
        self.protocol_name = protocol_name
        self.leader_id = leader_id
        self.state_since_ms = state_since_ms
        self.members: dict[str, ClassicMember] = {}
        #: The member ids of static members, by their group instance ids.
        self.static_ids: dict[str, str] = {}
        #: Member ids that were handed out to clients who have not come back with them yet.
        self.pending_ids: set[str] = set()
        #: Who waits for the others to join, and who waits for the leader's assignments.
        self.joining: ParkedMembers[JoinGroupResponse] = ParkedMembers()
        self.syncing: ParkedMembers[SyncGroupResponse] = ParkedMembers()
        #: Members that joined for the first time and have not heard their id yet.
        self.newcomer_ids: set[str] = set()
        #: Members of this generation that have not asked for their assignment yet.
        self.unsynced_ids: set[str] = set()
        #: Whether the first rebalance of the group may wait some more, since members are coming.
        self.is_growing = False
        #: The generation whose assignments are being written.
        self.storing_generation: int | None = None
        #: The group as it stands in the topic.
        self.stored: bytes | None = None
        self._protocol_type = protocol_type
        self._supporters: Counter[str] = Counter()
        #: What the subscriptions of all members take.
        self.metadata_bytes = 0
        #: None if the group does not consist of consumers, or of ones that nobody understands.
        self._topics: frozenset[str] | None = None
        for member in members:
            self.add(member)
        self.read_subscriptions()

    # -- looking ---------------------------------------------------------------------------------

    @property
    def state_name(self) -> str:
        return self.state

    @property
    def protocol_type(self) -> str:
        return self._protocol_type

    @property
    def is_empty(self) -> bool:
        return self.state is ClassicState.EMPTY

    @property
    def is_rebalancing(self) -> bool:
        return self.state is ClassicState.PREPARING_REBALANCE

    @property
    def have_all_joined(self) -> bool:
        return len(self.joining) == len(self.members) and not self.pending_ids

    @property
    def rebalance_timeout_ms(self) -> int:
        """The longest that any member asks for."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    def supports(self, protocol_type: str, protocols: Mapping[str, bytes]) -> bool:
        """Whether a member with these protocols would leave the group one to agree on."""
        if self.state is ClassicState.EMPTY:
            return bool(protocol_type and protocols)
        return protocol_type == self._protocol_type and any(
            self._supporters[name] == len(self.members) for name in protocols
        )

    def elect_protocol(self) -> str:
        """What the members would vote for now."""
        return elect_strategy([member.protocols for member in self.members.values()])

    def check_member(self, member_id: str, group_instance_id: str | None) -> ClassicMember:
        """The member; raises UNKNOWN_MEMBER_ID, or FENCED_INSTANCE_ID if another replaced it."""
        if group_instance_id is not None:
            known_id = self.static_ids.get(group_instance_id)
            if known_id is not None and known_id != member_id:
                raise fenced_member(self.group_id, group_instance_id)
            if known_id is None:
                raise unknown_member(self.group_id, member_id)
        member = self.members.get(member_id)
        if member is None:
            raise unknown_member(self.group_id, member_id)
        return member

    def check_generation(self, generation: int) -> None:
        if generation != self.generation:
            raise illegal_generation(self.group_id, self.generation, generation)

    def check_alive(self) -> None:
        if self.state is ClassicState.DEAD:
            raise KafkaError(
                ErrorCode.COORDINATOR_NOT_AVAILABLE, f"The group {self.group_id} is gone from here."
            )

    # -- changing --------------------------------------------------------------------------------

    def move_to(self, state: ClassicState, now_ms: int) -> None:
        """Take the next state; the table knows which may come."""
        allowed = state in TRANSITIONS[self.state]
        check(allowed, "the group %s cannot go from %s to %s", self.group_id, self.state, state)
        self.previous_state, self.state = self.state, state
        self.state_since_ms = now_ms

    def next_generation(self, now_ms: int) -> None:
        """All who will have joined: a new generation begins, or the group is empty."""
        self.generation += 1
        self.is_growing = False
        if self.members:
            self.protocol_name = self.elect_protocol()
            self.move_to(ClassicState.COMPLETING_REBALANCE, now_ms)
        else:
            self.protocol_name = None
            self.move_to(ClassicState.EMPTY, now_ms)
        self.read_subscriptions()

    def add(self, member: ClassicMember) -> None:
        """A new member, the leader if it is the first."""
        instance_id = member.group_instance_id
        if instance_id is not None:
            check(instance_id not in self.static_ids, "%s is a member already", instance_id)
            self.static_ids[instance_id] = member.member_id
        if not self.members:
            self._protocol_type = member.protocol_type
        if self.leader_id is None:
            self.leader_id = member.member_id
        self.members[member.member_id] = member
        self._count_protocols(member)
        self.pending_ids.discard(member.member_id)

    def remove(self, member_id: str) -> None:
        """A member is gone, and if it still waits for an answer it is told so."""
        error = unknown_member(self.group_id, member_id)
        self.joining.fail(member_id, error)
        self.syncing.fail(member_id, error)
        self.newcomer_ids.discard(member_id)
        self.unsynced_ids.discard(member_id)
        member = self.members.pop(member_id)
        self._discount_protocols(member)
        if member.group_instance_id is not None:
            del self.static_ids[member.group_instance_id]
        if self.leader_id == member_id:
            self.leader_id = next(iter(self.members), None)

    def change_protocols(self, member: ClassicMember, protocols: Mapping[str, bytes]) -> None:
        """A member joins again and may support something else by now."""
        self._discount_protocols(member)
        member.protocols = dict(protocols)
        self._count_protocols(member)

    def replace_static(self, old: ClassicMember, new: ClassicMember) -> None:
        """A static member has come back under another id, which takes its place in everything."""
        instance_id = new.group_instance_id or ""
        check(instance_id in self.static_ids, "%s is no static member", new.member_id)
        error = fenced_member(self.group_id, instance_id)
        self.joining.fail(old.member_id, error)
        self.syncing.fail(old.member_id, error)
        self.newcomer_ids.discard(old.member_id)
        if old.member_id in self.unsynced_ids:
            self.unsynced_ids.remove(old.member_id)
            self.unsynced_ids.add(new.member_id)
        self._discount_protocols(old)
        self._count_protocols(new)
        # The order of members decides votes and elections, so the place is kept.
        self.members = {
            member.member_id: member
            for member in (new if each is old else each for each in self.members.values())
        }
        self.static_ids[instance_id] = new.member_id
        if self.leader_id == old.member_id:
            self.leader_id = new.member_id

    def _count_protocols(self, member: ClassicMember) -> None:
        self._supporters.update(member.protocols.keys())
        self.metadata_bytes += member.metadata_bytes

    def _discount_protocols(self, member: ClassicMember) -> None:
        self._supporters.subtract(member.protocols.keys())
        self.metadata_bytes -= member.metadata_bytes

    def elect_joined_leader(self) -> bool:
        """Whether the leader has joined again, or somebody else did who is the leader now."""
        if self.leader_id is None:
            return False
        if self.leader_id not in self.joining:
            joined = (member_id for member_id in self.members if member_id in self.joining)
            new_leader_id = next(joined, None)
            if new_leader_id is None:
                return False
            self.leader_id = new_leader_id
        return True

    def read_subscriptions(self) -> None:
        """Find out what a generation's members consume."""
        name, members = self.protocol_name, self.members.values()
        if not members:
            self._topics = frozenset()
        elif self._protocol_type == CONSUMER_PROTOCOL_TYPE and name is not None:
            self._topics = topics_of_all(member.protocols[name] for member in members)
        else:
            self._topics = None

    # -- what offsets and deletion ask -----------------------------------------------------------

    def check_offset_commit(
        self,
        member_id: str,
        group_instance_id: str | None,
        generation: int,
        *,
        is_transactional: bool,
        api_version: int,
    ) -> None:
        self.check_alive()
        if generation < 0 and self.state is ClassicState.EMPTY:
            return  # An administrator, or a consumer that assigns partitions to itself.
        if generation >= 0 or member_id or group_instance_id is not None:
            member = self.check_member(member_id, group_instance_id)
            self.check_generation(generation)
            if self.state is not ClassicState.COMPLETING_REBALANCE:
                member.extend_session()
        elif not is_transactional:
            # Producers of older versions do not say which member they commit for.
            raise unknown_member(self.group_id, member_id)
        if self.state is ClassicState.COMPLETING_REBALANCE and not is_transactional:
            raise rebalance_in_progress(self.group_id)

    def check_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        self._check_exists()

    def check_deletion(self) -> None:
        self._check_exists()
        if self.state is not ClassicState.EMPTY:
            raise KafkaError(
                ErrorCode.NON_EMPTY_GROUP, f"The group {self.group_id} still has members."
            )

    def is_subscribed_to(self, topic: str) -> bool:
        if self._topics is None:
            return self._protocol_type == CONSUMER_PROTOCOL_TYPE
        return topic in self._topics

    def offsets_unused_since_ms(self, topic: str, commit_ms: int) -> int | None:
        if not self._protocol_type:
            return commit_ms
        if self.state is ClassicState.EMPTY:
            return commit_ms if self.state_since_ms is None else self.state_since_ms
        are_known = self._protocol_type == CONSUMER_PROTOCOL_TYPE and self._topics is not None
        if are_known and self.state is ClassicState.STABLE and not self.is_subscribed_to(topic):
            return commit_ms
        return None

    def tombstones(self) -> list[StoredRecord]:
        return [group_metadata_tombstone(self.group_id)]

    def stored_state(self) -> object:
        return self.kind, self.stored

    def _check_exists(self) -> None:
        if self.state is ClassicState.DEAD:
            raise KafkaError(
                ErrorCode.GROUP_ID_NOT_FOUND, f"The group {self.group_id} is gone from here."
            )
