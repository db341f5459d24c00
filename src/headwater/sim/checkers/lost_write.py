"""Lost write: what acks=all acknowledged is there in the end, under the offset that was told."""

from __future__ import annotations

from headwater.sim.histories.history import Contents, History, PropertyViolated


def check_nothing_lost(history: History, contents: Contents) -> None:
    for partition, acknowledged in history.acknowledged.items():
        stored = dict(contents.get(partition, ()))
        for offset, value in sorted(acknowledged.items()):
            if stored.get(offset) != value:
                raise PropertyViolated(
                    f"nothing acknowledged is lost: {partition} offset {offset} should hold "
                    f"{value!r} and holds {stored.get(offset)!r}"
                )
