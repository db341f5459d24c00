"""Groups whose members come and go with both protocols: order is kept while the group changes."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.base.errors import ErrorCode, KafkaError
from headwater.coordinator.group.consumer.group import ConsumerGroup
from tests.support.tiers import rounds
from tests.support.worlds.consumer_world import GROUP, Client, ConsumerWorld
from tests.support.worlds.mixed_world import ClassicClient

EVENTS = ["consumer", "classic", *["beat", "go on"] * 2, "leave", "quit", "move", "grow"]

#: What happens, and to which member.
steps = st.lists(
    st.tuples(
        st.sampled_from(
            [
                "consumer",
                "classic",
                "beat",
                "beat",
                "go on",
                "go on",
                "leave",
                "quit",
                "move",
                "grow",
            ]
        ),
        st.integers(0, 5),
    ),
    max_size=60,
)


class MixedGroup:
    def __init__(self) -> None:
        self.world = ConsumerWorld({"orders": 3})
        self.consumers: list[Client] = []
        self.classics: list[ClassicClient] = []
        self.count = 0

    def take(self, step: str, number: int) -> None:
        world = self.world
        match step:
            case "consumer" if len(self.consumers) < 3:
                self.count += 1
                client = Client(world, f"m{self.count}", ["orders"])
                client.join()
                self.consumers.append(client)
            case "classic" if len(self.classics) < 3:
                # An eager one: it has nothing while it joins, so the fake leader may assign all.
                classic = ClassicClient(world, ["orders"], is_eager=True)
                self.classics.append(classic)
                classic.join()
            case "beat" if self.consumers:
                self.consumers[number % len(self.consumers)].beat_or_rejoin()
            case "go on" if self.classics:
                self.classics[number % len(self.classics)].go_on()
            case "leave" if self.consumers:
                self.consumers.pop(number % len(self.consumers)).leave()
            case "quit" if self.classics:
                self.quit(self.classics.pop(number % len(self.classics)))
            case "move":
                world.shard.close(KafkaError(ErrorCode.NOT_COORDINATOR))
                world.take_over()
            case "grow" if len(world.image.topics["orders"].partitions) < 6:
                partitions = len(world.image.topics["orders"].partitions)
                world.set_topics({"orders": partitions + 1})
        world.advance(0)
        world.check_replay()
        self.check_owners()

    def quit(self, classic: ClassicClient) -> None:
        try:
            classic.leave()
        except KafkaError as error:
            assert error.code is ErrorCode.UNKNOWN_MEMBER_ID

    def check_owners(self) -> None:
        owned = [pair for client in self.consumers for pair in client.partitions]
        owned += [pair for classic in self.classics for pair in classic.owned]
        assert len(owned) == len(set(owned)), owned

    def settle(self) -> None:
        for _ in range(20):
            for client in self.consumers:
                client.beat_or_rejoin()
            for classic in self.classics:
                classic.go_on()
            # Who handed out a member id and was left alone waits for a session.
            self.world.advance(1_000)
        self.check_owners()
        partitions = len(self.world.image.topics["orders"].partitions)
        owned = sum(len(client.owned) for client in self.consumers)
        owned += sum(len(classic.owned) for classic in self.classics)
        if self.consumers or self.classics:
            assert owned == partitions
        group = self.world.shard.groups.find(GROUP)
        if self.consumers:
            assert isinstance(group, ConsumerGroup)
            assert group.state_name == "Stable"


@given(history=steps)
@settings(max_examples=rounds(60, 2000), deadline=None)
def test_members_of_both_protocols_share_a_group(history: list[tuple[str, int]]) -> None:
    group = MixedGroup()
    for step, number in history:
        group.take(step, number)
    group.settle()
