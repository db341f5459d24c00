"""What a writer sent, what was acknowledged, and what a topic must hold in consequence.

A writer sends numbers, each larger than the one before, to the partitions of one topic. So the
number itself says where a record belongs among those of its partition, whoever wrote it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise

#: Enough of a kind of fault to see what is wrong.
SHOWN_COUNT = 5


class Ledger:
    """Written by one writer's thread or callbacks, read by the test."""

    def __init__(self) -> None:
        self.sent_count = 0
        #: The numbers that were acknowledged, with their partitions, in the order of the answers.
        self.acknowledged: list[tuple[int, int]] = []
        #: What was refused in the end: a number, and why.
        self.refused: list[tuple[int, str]] = []

    @property
    def open_count(self) -> int:
        return self.sent_count - len(self.acknowledged) - len(self.refused)

    def faults(
        self, found: Mapping[int, Sequence[int]], *, is_idempotent: bool = True
    ) -> list[str]:
        """What is wrong with a topic that has these numbers, by partition, in order of offsets."""
        present = {(partition, number) for partition, some in found.items() for number in some}
        lost = [pair for pair in self.acknowledged if pair not in present]
        faults = [f"{number} of partition {partition} is lost" for partition, number in lost]
        never_sent = {number for _, number in present if number >= self.sent_count}
        faults += [f"{number} was never sent" for number in sorted(never_sent)]
        if is_idempotent:
            for partition, numbers in sorted(found.items()):
                faults += _doubles(partition, numbers)[:SHOWN_COUNT]
                faults += _disorder(partition, numbers)[:SHOWN_COUNT]
        return faults


def _doubles(partition: int, numbers: Sequence[int]) -> list[str]:
    return [
        f"{number} is there {count} times in partition {partition}"
        for number, count in Counter(numbers).items()
        if count > 1
    ]


def _disorder(partition: int, numbers: Sequence[int]) -> list[str]:
    return [
        f"{after} comes after {before} in partition {partition}"
        for before, after in pairwise(numbers)
        if after < before
    ]
