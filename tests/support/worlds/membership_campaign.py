"""Groups of members in random trouble: nobody shares a partition, and all ends well.

Each seed is one story: consumers come, go, are killed, stop to poll, change what they subscribe to;
topics grow, come and go; the coordinator moves; requests and answers are lost. While it happens no
partition has two owners that the coordinator believes in, and no commit is undone by an earlier
one. When the trouble ends, every partition has one owner, soon.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from headwater.client.consumer.membership.membership import Subscription
from tests.support.worlds.member_world import MemberWorld

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


class MembershipCampaign:
    def __init__(self, kind: str, seed: int) -> None:
        self._generator = random.Random(f"{kind}-{seed}")
        self.kind, self.seed = kind, seed
        self.world = MemberWorld(seed, {"a": 4, "b": 3, "c": 1})
        self._count = 0

    def run(self) -> str:
        """Raises AssertionError, its first line the seed; returns the hash of the trace."""
        trace = self.world.network.trace
        try:
            self._let_things_happen()
            self._end_well()
        except Exception as error:
            raise AssertionError(
                f"seed {self.seed} of {self.kind}\n{error!r}\n{trace.latest()}"
            ) from error
        return trace.hash

    def _let_things_happen(self) -> None:
        network = self.world.network
        network.loss_rate = self._generator.choice([0.0, 0.02, 0.1])
        network.refusal_rate = self._generator.choice([0.0, 0.02, 0.1])
        network.delay_ms_max = self._generator.choice([5, 100, 1500])
        self._start()
        for _ in range(self._generator.randint(3, 12)):
            self._act()
            self.world.run(self._generator.choice([50, 1000, 6000, 20_000]))

    def _end_well(self) -> None:
        network = self.world.network
        network.loss_rate = network.refusal_rate = 0.0
        for consumer in self.world.consumers:
            consumer.polls |= not consumer.is_closed
        if not self.world.alive():
            self._start()
        self.world.settle(limit_ms=240_000)
        self.world.run(5000)
        self.world.settle()
        for consumer in self.world.alive():
            assert consumer.membership.failure is None

    def _act(self) -> None:
        if not self.world.alive():
            self._start()
            return
        some = self._generator.choice(self.world.alive())
        match self._generator.randrange(10):
            case 0 | 1 | 2:
                self._start()
            case 3:
                some.close()
            case 4:
                some.kill()
            case 5:
                some.subscribe(Subscription(frozenset(self._topics())))
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

    def _start(self) -> None:
        self._count += 1
        protocol, assignors = self._generator.choice(KINDS[self.kind])
        is_static = self._generator.random() < 0.2
        self.world.start(
            f"m{self._count}",
            self._topics(),
            protocol=protocol,
            assignors=assignors,
            instance_id=f"i{self._count}" if is_static else None,
        )

    def _topics(self) -> list[str]:
        return self._generator.sample(["a", "b", "c"], self._generator.randint(1, 3))
