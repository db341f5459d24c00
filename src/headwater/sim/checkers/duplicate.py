"""Duplicate: a batch that an idempotent producer repeated is there once."""

from __future__ import annotations

from headwater.sim.histories.history import Contents, History, PropertyViolated


def check_stored_once(history: History, contents: Contents) -> None:
    for partition, records in contents.items():
        first_offset: dict[bytes, int] = {}
        for offset, value in records:
            other = first_offset.setdefault(value, offset)
            if other != offset and history.sent[value].is_idempotent:
                raise PropertyViolated(
                    f"an idempotent record is stored once: {value!r} is in {partition} at "
                    f"{other} and at {offset}"
                )
