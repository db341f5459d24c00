"""What an acknowledgement is worth with the settings in force, in one sentence for people.

`serve` prints it at the start and `doctor` when it is asked, so that nobody has to work it out from
three settings.
"""

from __future__ import annotations

from typing import NamedTuple


class DurabilityPromise(NamedTuple):
    """`survives_power_loss` is about records acknowledged with acks=all."""

    sentence: str
    survives_power_loss: bool


def durability_promise(
    acks_all_flush: str, flush_interval_messages: int, *, is_alone: bool = True
) -> DurabilityPromise:
    """The promise for `acks.all.flush`, `log.flush.interval.messages` and one broker or more."""
    if flush_interval_messages == 1:
        return DurabilityPromise(
            "Every acknowledged record is on disk (log.flush.interval.messages=1).", True
        )
    if acks_all_flush == "leader":
        return DurabilityPromise(
            "A record acknowledged with acks=all is on the leader's disk (acks.all.flush=leader).",
            True,
        )
    if acks_all_flush == "off":
        return DurabilityPromise(
            "Nothing waits for the disk (acks.all.flush=off): acknowledged records survive the end "
            "of the process, but a power failure may lose them.",
            False,
        )
    if is_alone:
        return DurabilityPromise(
            "A record acknowledged with acks=all is on disk and survives a power failure; "
            "with acks=1 it survives the end of the process.",
            True,
        )
    return DurabilityPromise(
        "A record acknowledged with acks=all is on every in-sync replica, and on disk where only "
        "one is in sync.",
        True,
    )
