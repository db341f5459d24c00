"""What clients did and were told in a simulation.

Clients write down what they send, what is acknowledged and what they read. At the end, when the
world is healed, somebody reads every partition from its start to its end, and the `checkers`
compare the two.

Every record has a value of its own, so that it can be told wherever it turns up: the client that
sent it and its number there.
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from headwater.base.ids import TopicPartition


class PropertyViolated(AssertionError):
    """A broker did what it promises never to do."""


class Sent(NamedTuple):
    """A record that some client sent at least once."""

    client: str
    number: int
    partition: TopicPartition
    #: Whether the client numbers its batches, so that the broker can tell a repetition.
    is_idempotent: bool


class Stored(NamedTuple):
    """A record that was read at the end."""

    offset: int
    value: bytes


#: What each partition holds in the end, from its start.
Contents = Mapping[TopicPartition, Sequence[Stored]]


@dataclass
class History:
    sent: dict[bytes, Sent] = field(default_factory=dict)
    #: By partition, what acks=all acknowledged: the value at each offset.
    acknowledged: dict[TopicPartition, dict[int, bytes]] = field(
        default_factory=lambda: defaultdict(dict)
    )
    #: Topics whose creation was acknowledged, and the ids that were told.
    topics: dict[str, uuid.UUID] = field(default_factory=dict)
    #: The ids of topics whose deletion was acknowledged.
    deleted: set[uuid.UUID] = field(default_factory=set)

    def send(self, sent: Sent) -> bytes:
        """The value for a record that is about to be sent."""
        value = f"{sent.client}/{sent.number}".encode()
        self.sent[value] = sent
        return value

    def acknowledge(self, partition: TopicPartition, base_offset: int, values: list[bytes]) -> None:
        """The broker said that these are safe, at these offsets."""
        known = self.acknowledged[partition]
        for offset, value in enumerate(values, base_offset):
            other = known.setdefault(offset, value)
            if other != value:
                raise PropertyViolated(
                    f"an acknowledged record is never replaced: {partition} offset {offset} was "
                    f"acknowledged for {other!r} and then for {value!r}"
                )

    def acknowledged_end(self, partition: TopicPartition) -> int:
        """One past the last offset that was acknowledged."""
        return max(self.acknowledged.get(partition, {-1: b""}), default=-1) + 1

    @property
    def acknowledged_count(self) -> int:
        return sum(map(len, self.acknowledged.values()))
