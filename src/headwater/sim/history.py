"""What clients did and were told in a simulation, and the checks of it: one property each.

Clients write down what they send, what is acknowledged and what they read. At the end, when the
world is healed, somebody reads every partition from its start to its end, and each check compares
the two. A check raises `PropertyViolated`, whose text names the property and the first thing that
contradicts it.

Every record has a value of its own, so that it can be told wherever it turns up: the client that
sent it and its number there.
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from headwater.base.ids import TopicPartition


class PropertyViolated(AssertionError):
    """The broker did what it promises never to do."""


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

    # -- the properties --------------------------------------------------------------------------

    def check_all(self, contents: Contents, topics: Mapping[str, uuid.UUID]) -> None:
        check_offsets(contents)
        self.check_nothing_lost(contents)
        self.check_nothing_foreign(contents)
        self.check_stored_once(contents)
        self.check_order(contents)
        self.check_topics(topics)

    def check_nothing_lost(self, contents: Contents) -> None:
        """What acks=all acknowledged is there, under the offset that was told."""
        for partition, acknowledged in self.acknowledged.items():
            stored = dict(contents.get(partition, ()))
            for offset, value in sorted(acknowledged.items()):
                if stored.get(offset) != value:
                    raise PropertyViolated(
                        f"nothing acknowledged is lost: {partition} offset {offset} should hold "
                        f"{value!r} and holds {stored.get(offset)!r}"
                    )

    def check_nothing_foreign(self, contents: Contents) -> None:
        """There is nothing that nobody sent there."""
        for partition, records in contents.items():
            for offset, value in records:
                sent = self.sent.get(value)
                if sent is None or sent.partition != partition:
                    raise PropertyViolated(
                        f"only what was sent is stored: {partition} offset {offset} holds "
                        f"{value!r}, which was sent to {sent.partition if sent else 'nobody'}"
                    )

    def check_stored_once(self, contents: Contents) -> None:
        """A batch that an idempotent producer repeated is there once."""
        for partition, records in contents.items():
            first_offset: dict[bytes, int] = {}
            for offset, value in records:
                other = first_offset.setdefault(value, offset)
                if other != offset and self.sent[value].is_idempotent:
                    raise PropertyViolated(
                        f"an idempotent record is stored once: {value!r} is in {partition} at "
                        f"{other} and at {offset}"
                    )

    def check_order(self, contents: Contents) -> None:
        """A client's records are in the order in which it sent them first."""
        for partition, records in contents.items():
            last: dict[str, int] = {}
            seen: set[bytes] = set()
            for offset, value in records:
                if value in seen:
                    continue  # A repetition, which only those who are not idempotent may leave.
                seen.add(value)
                sent = self.sent[value]
                if sent.number <= last.get(sent.client, -1):
                    raise PropertyViolated(
                        f"the order of a producer is kept: in {partition} {value!r} at {offset} "
                        f"comes behind number {last[sent.client]}"
                    )
                last[sent.client] = sent.number

    def check_topics(self, topics: Mapping[str, uuid.UUID]) -> None:
        """A topic that was created is there and is the same one; one that was deleted is not."""
        for name, topic_id in self.topics.items():
            if topics.get(name) != topic_id:
                raise PropertyViolated(
                    f"created topics stay: {name} should have the id {topic_id} and has "
                    f"{topics.get(name)}"
                )
        for name, topic_id in topics.items():
            if topic_id in self.deleted:
                raise PropertyViolated(f"deleted topics stay away: {name} is back as {topic_id}")


def check_offsets(contents: Contents) -> None:
    """Offsets go up by one: nothing was compacted, so nothing may be missing."""
    for partition, records in contents.items():
        for (offset, _), (next_offset, value) in pairwise(records):
            if next_offset != offset + 1:
                raise PropertyViolated(
                    f"offsets have no gaps: in {partition} {value!r} has {next_offset}, behind "
                    f"{offset}"
                )


class HighWatermarks:
    """What one reader was told of high watermarks, which never go back while nothing is lost.

    A power loss may take back what was not on disk, but never below what was acknowledged with
    acks=all: readers then start again from there.
    """

    def __init__(self, history: History) -> None:
        self._history = history
        self.power_loss_count = 0
        self._seen: dict[TopicPartition, int] = {}

    def observe(self, partition: TopicPartition, high_watermark: int) -> None:
        """An answer came that was asked for after the last power loss."""
        before = self._seen.get(partition, 0)
        if high_watermark < before:
            raise PropertyViolated(
                f"the high watermark never goes back: in {partition} it was {before} and is "
                f"{high_watermark}"
            )
        self._seen[partition] = high_watermark

    def power_lost(self) -> None:
        self.power_loss_count += 1
        for partition in self._seen:
            self._seen[partition] = self._history.acknowledged_end(partition)
