"""How far a replay has come, as a consumer group's offsets on the topic that it writes to.

The position is committed in the transaction that writes the records, so both happen or neither. It
is where the replay stands in each partition of the archive; the archived topic need not exist any
more, so the position of archived partition p is kept as the metadata of target partition p modulo
their number, as text:

    orders|from|until|0:5000 4:4711

What is replayed (topic and times) stands in front, so that a name is not used for two things.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from headwater.base.counted import counted
from headwater.pipeline.lake.errors import LakeError

#: A broker's `offset.metadata.max.bytes`, by default.
METADATA_BYTES_MAX: Final = 4096
GROUP_PREFIX: Final = "headwater-replay-"


class ReplaySubject(NamedTuple):
    """What is replayed."""

    topic: str
    from_ms: int | None = None
    until_ms: int | None = None

    def to_text(self) -> str:
        return "|".join((self.topic, *("" if each is None else str(each) for each in self[1:])))


def positions_to_text(
    subject: ReplaySubject, positions: Mapping[int, int], target_count: int
) -> dict[int, str]:
    """The metadata of each target partition that has some."""
    entries: dict[int, list[str]] = {}
    for partition, offset in sorted(positions.items()):
        entries.setdefault(partition % target_count, []).append(f"{partition}:{offset}")
    texts = {number: f"{subject.to_text()}|{' '.join(some)}" for number, some in entries.items()}
    if any(len(text) > METADATA_BYTES_MAX for text in texts.values()):
        raise LakeError(
            f"The position of a replay of {counted(len(positions), 'partition')} has no room in "
            f"the offsets of {target_count}: give the target topic more partitions."
        )
    return texts


def positions_from_text(subject: ReplaySubject, texts: Iterable[str], group: str) -> dict[int, int]:
    """The next offset of each archived partition; raises if the group is of another replay."""
    positions: dict[int, int] = {}
    for text in texts:
        about, _, entries = text.rpartition("|")
        if about != subject.to_text():
            raise LakeError(
                f"The group {group!r} holds the position of another replay ({about or text!r}): "
                "give this one another name."
            )
        for entry in entries.split():
            partition, _, offset = entry.partition(":")
            positions[int(partition)] = int(offset)
    return positions
