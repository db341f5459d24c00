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
    acks_all_flush: str,
    flush_interval_messages: int,
    *,
    is_alone: bool = True,
    min_insync_replicas: int = 1,
) -> DurabilityPromise:
    """The promise for `acks.all.flush`, `log.flush.interval.messages` and one broker or more."""
    if flush_interval_messages == 1:
        return DurabilityPromise(
            "Every acknowledged record is on disk (log.flush.interval.messages=1).", True
        )
    replicas = f"every in-sync replica, of which there are {min_insync_replicas} at least"
    if acks_all_flush == "leader":
        also = "" if is_alone else f" and on {replicas}"
        return DurabilityPromise(
            "A record acknowledged with acks=all is on the leader's disk (acks.all.flush=leader)"
            f"{also}.",
            True,
        )
    if acks_all_flush == "off":
        if is_alone or min_insync_replicas == 1:
            return DurabilityPromise(
                "Nothing waits for the disk (acks.all.flush=off): acknowledged records survive the "
                "end of the process, but a power failure may lose them.",
                False,
            )
        return DurabilityPromise(
            "Nothing waits for the disk (acks.all.flush=off): a record acknowledged with acks=all "
            f"is on {replicas}, and is lost if all of them lose power at once.",
            True,
        )
    if is_alone:
        return DurabilityPromise(
            "A record acknowledged with acks=all is on disk and survives a power failure; "
            "with acks=1 it survives the end of the process.",
            True,
        )
    if min_insync_replicas == 1:
        return DurabilityPromise(
            "A record acknowledged with acks=all is on every in-sync replica, and on disk where "
            "only one is in sync; min.insync.replicas=2 would have it on two at least.",
            True,
        )
    return DurabilityPromise(
        f"A record acknowledged with acks=all is on {replicas} (min.insync.replicas).",
        True,
    )
