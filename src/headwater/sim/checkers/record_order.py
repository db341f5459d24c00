"""Order: offsets go up by one, and each client's records are in the order in which it sent them."""

from __future__ import annotations

from itertools import pairwise

from headwater.sim.histories.history import Contents, History, PropertyViolated


def check_offsets(contents: Contents) -> None:
    """Offsets go up by one: nothing was compacted, so nothing may be missing."""
    for partition, records in contents.items():
        for (offset, _), (next_offset, value) in pairwise(records):
            if next_offset != offset + 1:
                raise PropertyViolated(
                    f"offsets have no gaps: in {partition} {value!r} has {next_offset}, behind "
                    f"{offset}"
                )


def check_order(history: History, contents: Contents) -> None:
    """A client's records are in the order in which it sent them first."""
    for partition, records in contents.items():
        last: dict[str, int] = {}
        seen: set[bytes] = set()
        for offset, value in records:
            if value in seen:
                continue  # A repetition, which only those who are not idempotent may leave.
            seen.add(value)
            sent = history.sent[value]
            if sent.number <= last.get(sent.client, -1):
                raise PropertyViolated(
                    f"the order of a producer is kept: in {partition} {value!r} at {offset} "
                    f"comes behind number {last[sent.client]}"
                )
            last[sent.client] = sent.number
