"""Foreign record: there is nothing in a partition that nobody sent there."""

from __future__ import annotations

from headwater.sim.histories.history import Contents, History, PropertyViolated


def check_nothing_foreign(history: History, contents: Contents) -> None:
    for partition, records in contents.items():
        for offset, value in records:
            sent = history.sent.get(value)
            if sent is None or sent.partition != partition:
                raise PropertyViolated(
                    f"only what was sent is stored: {partition} offset {offset} holds "
                    f"{value!r}, which was sent to {sent.partition if sent else 'nobody'}"
                )
