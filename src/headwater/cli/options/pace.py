"""The options that say how fast replicas move, for all commands that move any."""

from __future__ import annotations

from typing import Annotated, Final, TypeAlias

import typer

from headwater.cli.options.throttle import OPTION, parse_throttle

#: As much as a disk of yesterday gives without anybody noticing, and half of what a network of
#: 1 Gbit/s carries.
_THROTTLE: Final = "50MB"
#: So many replicas a broker receives or sends at once, as Cruise Control has it.
PER_BROKER: Final = 10

Throttle: TypeAlias = Annotated[
    str | None,
    typer.Option(
        OPTION,
        metavar="RATE",
        help="The most that a broker sends or receives for new replicas in a second, or none.  "
        f"[default: {_THROTTLE}]",
    ),
]
PerBroker: TypeAlias = Annotated[
    int,
    typer.Option("--moves-per-broker", min=1, help="How many replicas a broker copies at once."),
]


def throttle_or_default(throttle: str | None) -> int:
    """Bytes a second; 0 for none."""
    return parse_throttle(throttle or _THROTTLE)
