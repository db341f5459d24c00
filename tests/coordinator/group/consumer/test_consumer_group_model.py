"""Consumer groups under random joins, leaves, silence, topic changes and coordinator changes."""

from __future__ import annotations

import uuid
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    rule,
)

from headwater.base.errors import ErrorCode, KafkaError
from headwater.coordinator.group.consumer.assigning.assignment import pairs
from headwater.coordinator.group.consumer.group import ConsumerGroup
from tests.support.tiers import rounds
from tests.support.worlds.consumer_world import GROUP, Client, ConsumerWorld, settle_group

TOPICS = ["a1", "a2", "b1", "b2"]
REGEXES = ["a.*", ".*", "b1|a1"]
NOT_WRITTEN = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS, "It cannot be written.")

subscriptions = st.lists(st.sampled_from(TOPICS), max_size=3, unique=True)


class GroupHistory(RuleBasedStateMachine):
    """Members that do as they like, and a coordinator that must keep order among them."""

    clients: Bundle[Any] = Bundle("clients")

    @initialize(counts=st.dictionaries(st.sampled_from(TOPICS), st.integers(1, 4)))
    def begin(self, counts: dict[str, int]) -> None:
        self.world = ConsumerWorld(counts)
        self.alive: list[Client] = []
        self.count = 0
        self.epoch = 0

    # -- what members do -------------------------------------------------------------------------

    @rule(
        target=clients,
        topics=subscriptions,
        regex=st.none() | st.sampled_from(REGEXES),
        assignor=st.sampled_from([None, "range", "uniform"]),
        is_static=st.booleans(),
        clings=st.booleans(),
    )
    def join(
        self,
        topics: list[str],
        regex: str | None,
        assignor: str | None,
        is_static: bool,
        clings: bool,
    ) -> Any:
        if len(self.alive) >= 5:
            return multiple()
        self.count += 1
        client = Client(
            self.world,
            f"m{self.count}",
            topics,
            regex=regex,
            assignor=assignor,
            instance_id=f"i{self.count}" if is_static else None,
            rebalance_timeout_ms=20_000,
        )
        client.clings = clings
        client.join()
        self.alive.append(client)
        return client

    @rule(client=clients, tells_owned=st.booleans())
    def beat(self, client: Client, tells_owned: bool) -> None:
        try:
            client.beat(tells_owned=tells_owned)
        except KafkaError as error:
            assert error.code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH)
            client.join()

    @rule(client=clients)
    def give_up(self, client: Client) -> None:
        client.revoke()

    @rule(client=clients, topics=subscriptions)
    def subscribe(self, client: Client, topics: list[str]) -> None:
        try:
            client.subscribe(topics)
        except KafkaError:
            client.join()

    @rule(client=clients)
    def miss_an_answer(self, client: Client) -> None:
        """The coordinator takes the heartbeat, but the member never hears of it.

        A consumer to which that happens tells everything the next time.
        """
        request = client.complete_request()
        if self.world.refusal(request) is ErrorCode.NONE:
            try:
                client._take(client.complete_request())
            except KafkaError:
                client.join()

    @rule(client=clients)
    def restart_as_a_static_member(self, client: Client) -> None:
        if client.instance_id is None:
            return
        try:
            client.leave(-2)
        except KafkaError:
            return  # It was fenced, and comes back with its next heartbeat.
        self.count += 1
        client.member_id = f"m{self.count}"
        client.join()

    @rule(client=consumes(clients))
    def leave(self, client: Client) -> None:
        self.alive.remove(client)
        try:
            client.leave()
        except KafkaError as error:
            assert error.code is ErrorCode.UNKNOWN_MEMBER_ID

    @rule(client=consumes(clients))
    def die(self, client: Client) -> None:
        """It stops, and the coordinator does not know yet."""
        self.alive.remove(client)
        client.owned = set()

    # -- what happens around them ----------------------------------------------------------------

    @rule(name=st.sampled_from(TOPICS), count=st.none() | st.integers(1, 5))
    def change_topic(self, name: str, count: int | None) -> None:
        known = self.world.image.topics.get(name)
        if known is None and count is None:
            return
        if known is not None and count is not None:
            count = max(count, len(known.partitions))
        self.world.set_topics({name: count})

    @rule(ms=st.sampled_from([1_000, 10_000, 21_000, 46_000]))
    def pass_time(self, ms: int) -> None:
        self.world.advance(ms)
        self._give_up_what_fenced_members_had()

    @rule()
    def move_coordinator(self) -> None:
        self.world.take_over()

    @rule(client=clients)
    def fail_to_write(self, client: Client) -> None:
        self.world.fail_next = NOT_WRITTEN
        try:
            client.beat()
        except KafkaError as error:
            if error.code is not ErrorCode.NOT_ENOUGH_REPLICAS:
                self.world.fail_next = None
                client.join()
        self.world.fail_next = None

    # -- what must hold --------------------------------------------------------------------------

    def _give_up_what_fenced_members_had(self) -> None:
        """A consumer whose session has ended knows that itself, and stops."""
        group = self.world.shard.groups.find_of(ConsumerGroup, GROUP)
        for client in self.alive:
            if group is None or client.member_id not in group.members:
                client.owned, client.told = set(), set()

    @invariant()
    def no_partition_has_two_owners(self) -> None:
        seen: dict[tuple[uuid.UUID, int], str] = {}
        for client in self.alive:
            for pair in client.owned:
                assert pair not in seen, f"{pair} is of {seen[pair]} and {client.member_id}"
                seen[pair] = client.member_id

    @invariant()
    def stored_state_is_what_the_topic_tells(self) -> None:
        self.world.check_replay()

    @invariant()
    def epochs_do_not_go_back(self) -> None:
        group = self.world.shard.groups.find_of(ConsumerGroup, GROUP)
        if group is not None:
            assert group.epoch >= self.epoch
            assert group.target_epoch <= group.epoch
            self.epoch = group.epoch

    def teardown(self) -> None:
        """In the end all members behave: then each has what it shall have."""
        if not hasattr(self, "world"):
            return
        for client in self.alive:
            client.clings = False
            client.revoke()
        for _ in range(3):  # Who has died without a word is given up after a session.
            for client in self.alive:
                client.beat_or_rejoin()
            self.world.advance(44_000)
        settle_group(self.world, self.alive)
        group = self.world.shard.groups.find_of(ConsumerGroup, GROUP)
        if group is None:
            return
        assert group.state_name == ("Stable" if self.alive else "Empty")
        assert set(group.members) == {client.member_id for client in self.alive}
        for client in self.alive:
            assert client.owned == set(pairs(group.target(client.member_id)))
        self._check_that_everything_is_read(group)

    def _check_that_everything_is_read(self, group: ConsumerGroup) -> None:
        owned = {pair for client in self.alive for pair in client.owned}
        wanted = {
            (topic.topic_id, number)
            for name in group.subscribed_topics()
            if (topic := self.world.image.topics.get(name)) is not None
            for number in range(len(topic.partitions))
        }
        assert owned == wanted


GroupHistory.TestCase.settings = settings(
    max_examples=rounds(60, 800), stateful_step_count=40, deadline=None
)
TestGroupHistory = GroupHistory.TestCase
