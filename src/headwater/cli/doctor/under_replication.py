"""Why partitions are under-replicated, worked out as an operator does, and what to do about it.

First, whether a broker is down: then its partitions are those that lack a replica, counted over all
others. If nobody is down, whether it is one broker or all of them. A broker that lives and is
behind is looked at twice, a moment apart, by the sizes of its replicas and of their leaders':

    stuck          it has not grown at all: its process hangs, or its disk has failed
    slow           it grows, but its leaders grow as fast: its disk, event loop or network
    new            it gets nearer, with some of its replicas: they are new, or were lost
    back           it gets nearer, with all of its replicas: it was away

Then the figure of its metrics is named that stands out. What moves, and what has got a larger
factor, lacks nothing while it waits for its new replicas: see `moving_replicas`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from typing import Final

from headwater.base.counted import counted
from headwater.base.ids import TopicPartition
from headwater.cli.doctor.findings import Finding, note, problem
from headwater.cli.doctor.metrics_check import Reading
from headwater.cli.doctor.replica_progress import LedPartition, Progress, ReplicaSizes
from headwater.cli.metrics.table import IDLE_SHARE_MIN
from headwater.cli.output.sizes import size_text
from headwater.client.connection.cluster_metadata import TopicInfo

SUBJECT: Final = "replication"
_NAMED_MAX: Final = 3
#: What a broker shows of itself when it is behind, and what that points to.
_FIGURES: Final = (
    ("headwater_offline_replicas", "has {value:.0f} replicas on a disk that is offline",
     "replace the disk and restart the broker"),
    ("headwater_failed_replica_partitions", "has given up {value:.0f} replicas after an error",
     "read its log, and restart it"),
    ("headwater_dead_replica_fetchers", "has {value:.0f} fetchers that have died",
     "restart it, and report what its log says"),
)  # fmt: skip
_IDLE: Final = (
    ("headwater_request_handler_avg_idle_percent", "disk threads",
     "look at its disk with `iostat -x 1`"),
    ("headwater_network_processor_avg_idle_percent", "event loop",
     "give leaders back to others with `headwater elect-leaders --all-topic-partitions`"),
)  # fmt: skip


class LateReplicas:
    """The replicas that are out of sync, by the broker that has them."""

    def __init__(self, topics: Collection[TopicInfo], brokers: Collection[int]) -> None:
        self._brokers = sorted(brokers)
        self._partition_count = 0
        self._behind: dict[int, list[LedPartition]] = defaultdict(list)
        #: How many replicas each broker has, and how many of them it follows.
        self._held: dict[int, int] = defaultdict(int)
        self._followed: dict[int, int] = defaultdict(int)
        for topic in topics:
            for each in topic.partitions:
                partition = TopicPartition(topic.name, each.partition)
                is_short = each.has_leader and len(each.isr) < len(each.replicas)
                self._partition_count += is_short
                for broker_id in each.replicas:
                    self._held[broker_id] += 1
                    self._followed[broker_id] += broker_id != each.leader_id
                    if is_short and broker_id not in each.isr:
                        self._behind[broker_id].append(LedPartition(partition, each.leader_id))

    @property
    def late_brokers(self) -> list[int]:
        """Brokers that live, and have replicas out of sync."""
        return [broker_id for broker_id in self._brokers if self._behind.get(broker_id)]

    def diagnose(
        self,
        before: ReplicaSizes,
        after: ReplicaSizes,
        seconds: float,
        readings: Sequence[Reading] = (),
    ) -> Iterator[Finding]:
        """What is wrong, one sentence a broker; nothing where all replicas are in sync."""
        for broker_id in sorted(self._behind):
            if broker_id not in self._brokers:
                yield self._down(broker_id)
        late = self.late_brokers
        if len(late) > 1 and late == self._brokers:
            yield problem(
                SUBJECT,
                f"Replicas on all {len(late)} brokers are behind, so it is the whole cluster: look "
                "at what they share, the network, ZooKeeper, or more traffic than it bears.",
            )
        elif len(late) == 1 and len(self._brokers) > 1:
            yield note(
                SUBJECT,
                f"Of the brokers that run only broker {late[0]} is behind, with "
                f"{len(self._behind[late[0]])} of its {counted(self._held[late[0]], 'replica')}: "
                "it is that broker, not the cluster.",
            )
        for broker_id in late:
            yield self._progress(broker_id, before, after, seconds)
            yield from _standing_out(broker_id, readings)

    def _down(self, broker_id: int) -> Finding:
        behind = len(self._behind[broker_id])
        leaders: dict[int, int] = defaultdict(int)
        for each in self._behind[broker_id]:
            leaders[each.leader_id] += 1
        shares = ", ".join(
            f"{count} led by broker {leader}" for leader, count in sorted(leaders.items())
        )
        whole = (
            f"the {counted(behind, 'partition')} that {'lacks' if behind == 1 else 'lack'} a "
            f"replica {'is' if behind == 1 else 'are'} its own, so nothing else is wrong"
            if behind == self._partition_count
            else f"{behind} of the {self._partition_count} partitions that lack a replica are its"
        )
        return problem(
            SUBJECT,
            f"Broker {broker_id} is down: {whole} ({shares}). Start it on its machine: `systemctl "
            f"start headwater`, or `headwater serve --broker-id {broker_id}` with its options.",
        )

    def _progress(
        self, broker_id: int, before: ReplicaSizes, after: ReplicaSizes, seconds: float
    ) -> Finding:
        behind = self._behind[broker_id]
        names = _some([str(each.partition) for each in behind])
        progress = Progress.of(broker_id, behind, before, after)
        if progress is None:
            return problem(
                SUBJECT, f"Broker {broker_id} is behind with {names}, and does not tell how far."
            )
        left = progress.left
        if left == 0:
            return note(
                SUBJECT,
                f"Broker {broker_id} has all of {names} and will be in sync in a moment; if not, "
                "see whether there is a controller.",
            )
        if progress.grown <= 0:
            return problem(
                SUBJECT,
                f"Broker {broker_id} is stuck: its replicas of {names} have not grown within "
                f"{seconds:.1f} s, and lack {size_text(left)}. Its log says why; restart it there "
                "with `systemctl restart headwater`.",
            )
        seconds_left = progress.seconds_left(seconds)
        if seconds_left is None:
            return problem(
                SUBJECT,
                f"Broker {broker_id} is too slow: its replicas of {names} lack {size_text(left)}, "
                "and their leaders grow as fast as they do. Have it fetch over more connections "
                "with `headwater configs alter --entity-type brokers --entity-default --add-config "
                "num.replica.fetchers=2`, if its disk and its network bear it.",
            )
        is_all = len(behind) == self._followed[broker_id] and len(behind) > 1
        what = (
            "was away and catches up with all that it follows"
            if is_all
            else f"has new replicas, or was given more, and copies {names}"
        )
        return note(
            SUBJECT,
            f"Broker {broker_id} {what}: {size_text(left)} are left, about {seconds_left:,.0f} s. "
            "Wait for it; `headwater topics describe --under-replicated-partitions` shows what is "
            "left.",
        )


def _standing_out(broker_id: int, readings: Sequence[Reading]) -> Iterator[Finding]:
    """The figures of a broker that are unlike the others'."""
    pages = {reading.broker_id: reading.page for reading in readings}
    own = pages.pop(str(broker_id), None)
    if own is None:
        return
    for metric, text, cure in _FIGURES:
        value = own.value(metric) or 0
        if value > 0:
            yield problem(SUBJECT, f"Broker {broker_id} {text.format(value=value)}: {cure}.")
    for metric, who, cure in _IDLE:
        share = own.value(metric)
        if share is None or share >= IDLE_SHARE_MIN:
            continue
        others = [found for page in pages.values() if (found := page.value(metric)) is not None]
        if others and min(others) >= IDLE_SHARE_MIN:
            yield problem(
                SUBJECT,
                f"The {who} of broker {broker_id} idle {share:.0%} of the time, those of others "
                f"{min(others):.0%} or more: {cure}.",
            )


def _some(names: list[str]) -> str:
    shown = ", ".join(names[:_NAMED_MAX])
    return shown if len(names) <= _NAMED_MAX else f"{shown} and {len(names) - _NAMED_MAX} more"
