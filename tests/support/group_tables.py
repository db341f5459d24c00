"""What `headwater groups` prints, taken apart."""

import json
from collections.abc import Callable

from tests.support.command import Finished

Command = Callable[..., Finished]


def cells(finished: Finished) -> list[list[str]]:
    return [line.split() for line in finished.lines]


def offsets_of(groups: Command, group: str) -> dict[int, int]:
    """What the group has committed, by partition."""
    rows = map(json.loads, groups("describe", group, "--json").lines)
    return {row["partition"]: row["current_offset"] for row in rows}
