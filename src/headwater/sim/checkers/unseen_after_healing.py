"""Unseen after healing: whoever reads on sees, once nothing fails any more, all that is there.

That is more than that nothing is lost: a reader that came before the trouble must get over it, and
find the same records as one that comes new.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from headwater.base.ids import TopicPartition
from headwater.sim.histories.history import Contents, PropertyViolated, Stored


def check_everything_seen(
    reader: str, seen: Mapping[TopicPartition, Sequence[Stored]], contents: Contents
) -> None:
    """`seen` is what a reader has read who was there all along."""
    for partition, records in seen.items():
        for expected, found in zip(contents[partition], records, strict=False):
            if expected != found:
                raise PropertyViolated(
                    f"what was read stays: {reader} has seen {found} in {partition}, where "
                    f"{expected} is"
                )
        if len(records) < len(contents[partition]):
            missing = contents[partition][len(records)]
            raise PropertyViolated(
                f"nothing stays unseen after healing: {reader} has not seen {missing} in "
                f"{partition}"
            )
        if len(records) > len(contents[partition]):
            extra = records[len(contents[partition])]
            raise PropertyViolated(
                f"what was read stays: {reader} has seen {extra} in {partition}, which is gone"
            )
