"""What members of groups were told in a simulation, and the checks of it: one property each.

Some are checked whenever something is told, since that is when they can be broken: each partition
has one owner in each generation of a group, and committed offsets never go back. Answers overtake
each other, so an answer is held against what was known when its question was sent, and no more.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from headwater.base.ids import TopicPartition
from headwater.sim.histories.history import PropertyViolated

#: Offsets of one group by partition.
Offsets = dict[TopicPartition, int]


class GroupHistory:
    def __init__(self) -> None:
        #: By group and generation: who owns each partition.
        self._owners: dict[tuple[str, int], dict[TopicPartition, str]] = defaultdict(dict)
        #: By group: the highest offset that is known to be committed.
        self._committed: dict[str, Offsets] = defaultdict(dict)
        #: By group: the offsets that some member was given.
        self._delivered: dict[tuple[str, TopicPartition], set[int]] = defaultdict(set)

    @property
    def generation_count(self) -> int:
        """How often members agreed on who owns what."""
        return len(self._owners)

    def own(
        self, group_id: str, generation: int, owner: str, partitions: Iterable[TopicPartition]
    ) -> None:
        """A member was told that these are its own."""
        owners = self._owners[group_id, generation]
        for partition in partitions:
            other = owners.setdefault(partition, owner)
            if other != owner:
                raise PropertyViolated(
                    f"a partition has one owner in a generation: {partition} belongs to {other} "
                    f"and to {owner} in generation {generation} of {group_id}"
                )

    def known(self, group_id: str) -> Offsets:
        """What is committed at least; taken before a question is sent, and given to `observe`."""
        return dict(self._committed[group_id])

    def commit(self, group_id: str, offsets: Mapping[TopicPartition, int]) -> None:
        """The coordinator said that these are committed."""
        committed = self._committed[group_id]
        for partition, offset in offsets.items():
            committed[partition] = max(offset, committed.get(partition, 0))

    def observe(self, group_id: str, known: Offsets, answer: Offsets) -> None:
        """The coordinator told what is committed, on a question of the time of `known`."""
        for partition, offset in answer.items():
            if offset < known.get(partition, 0):
                raise PropertyViolated(
                    f"committed offsets never go back: {group_id} had {known[partition]} in "
                    f"{partition} and has {offset}"
                )
        self.commit(group_id, answer)

    def deliver(self, group_id: str, partition: TopicPartition, offset: int) -> None:
        """A member got a record, and will commit it."""
        self._delivered[group_id, partition].add(offset)

    def check_all_delivered(self, group_id: str, ends: Mapping[TopicPartition, int]) -> None:
        """Nothing was skipped: every record up to the end came to some member."""
        for partition, end in ends.items():
            missing = set(range(end)) - self._delivered[group_id, partition]
            if missing:
                raise PropertyViolated(
                    f"a group gets every record: nobody in {group_id} got offset {min(missing)} "
                    f"of {partition}"
                )
