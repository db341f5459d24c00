"""Groups of members in random trouble: nobody shares a partition, and all ends well.

Each seed is one story: consumers come, go, are killed, stop to poll, change what they subscribe to;
topics grow, come and go; the coordinator moves; requests and answers are lost. While it happens no
partition has two owners that the coordinator believes in, and no commit is undone by an earlier
one. When the trouble ends, every partition has one owner, soon.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from headwater.client.consumer.membership import Subscription
from tests.support.member_world import MemberWorld
from tests.support.tiers import rounds

KINDS: dict[str, Sequence[tuple[str, tuple[str, ...]]]] = {
    "range": [("classic", ("range",))],
    "roundrobin": [("classic", ("roundrobin",))],
    "sticky": [("classic", ("sticky",))],
    "cooperative": [("classic", ("cooperative-sticky",))],
    "default": [("classic", ("range", "cooperative-sticky"))],
    "mixed assignors": [("classic", ("range",)), ("classic", ("sticky", "range"))],
    "eager and cooperative": [
        ("classic", ("range", "cooperative-sticky")),
        ("classic", ("cooperative-sticky",)),
    ],
    "consumer": [("consumer", ())],
    "both protocols": [("consumer", ()), ("classic", ("cooperative-sticky",))],
    "both protocols, eager": [("consumer", ()), ("classic", ("range",))],
}


class Story:
    def __init__(self, kind: str, seed: int) -> None:
        self.generator = random.Random(f"{kind}-{seed}")
        self.kind = kind
        self.world = MemberWorld(seed, {"a": 4, "b": 3, "c": 1})
        self.count = 0

    def tell(self) -> None:
        network = self.world.network
        network.loss_rate = self.generator.choice([0.0, 0.02, 0.1])
        network.refusal_rate = self.generator.choice([0.0, 0.02, 0.1])
        network.delay_ms_max = self.generator.choice([5, 100, 1500])
        self.start()
        for _ in range(self.generator.randint(3, 12)):
            self.act()
            self.world.run(self.generator.choice([50, 1000, 6000, 20_000]))

    def end(self) -> None:
        network = self.world.network
        network.loss_rate = network.refusal_rate = 0.0
        for consumer in self.world.consumers:
            consumer.polls |= not consumer.is_closed
        if not self.world.alive():
            self.start()
        self.world.settle(limit_ms=240_000)
        self.world.run(5000)
        self.world.settle()
        for consumer in self.world.alive():
            assert consumer.membership.failure is None

    def act(self) -> None:
        if not self.world.alive():
            self.start()
            return
        some = self.generator.choice(self.world.alive())
        match self.generator.randrange(10):
            case 0 | 1 | 2:
                self.start()
            case 3:
                some.close()
            case 4:
                some.kill()
            case 5:
                some.subscribe(Subscription(frozenset(self.topics())))
            case 6:
                some.polls = False
            case 7:
                for consumer in self.world.consumers:
                    consumer.polls |= not consumer.is_closed
            case 8:
                count = len(self.world.coordinator.image.topics["c"].partitions)
                self.world.coordinator.set_topics({"c": count + 1})
            case 9 if self.kind not in ("mixed assignors", "eager and cooperative"):
                # What is stored of a classic member has only the assignor that was chosen: who
                # cannot do that one is refused after a move, as by Apache Kafka.
                self.world.network.fail_over()

    def start(self) -> None:
        self.count += 1
        protocol, assignors = self.generator.choice(KINDS[self.kind])
        is_static = self.generator.random() < 0.2
        self.world.start(
            f"m{self.count}",
            self.topics(),
            protocol=protocol,
            assignors=assignors,
            instance_id=f"i{self.count}" if is_static else None,
        )

    def topics(self) -> list[str]:
        return self.generator.sample(["a", "b", "c"], self.generator.randint(1, 3))


@pytest.mark.parametrize("kind", KINDS)
def test_nobody_shares_a_partition_and_all_ends_well(kind: str) -> None:
    for seed in range(rounds(2, 60)):
        story = Story(kind, seed)
        try:
            story.tell()
            story.end()
        except Exception as error:
            raise AssertionError(f"seed {seed} of {kind}") from error
