"""What `auto.offset.reset` says: where to read from when there is no valid offset."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from headwater.base.settings import SettingError
from headwater.client.admin.offsets import OffsetTime

_BY_DURATION: Final = "by_duration:"
_DURATION: Final = re.compile(
    r"P(?:(?P<days>\d+)D)?"
    r"(?:T(?=\d)(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?(?:(?P<seconds>\d+(?:\.\d{1,9})?)S)?)?",
    re.ASCII | re.IGNORECASE,
)
_MS_OF: Final = {"days": 86_400_000, "hours": 3_600_000, "minutes": 60_000, "seconds": 1000}


class OffsetReset(NamedTuple):
    """A strategy; `duration_ms` belongs to by_duration alone."""

    name: str
    duration_ms: int = 0

    def timestamp(self, wall_ms: int) -> int:
        """What to ask the leader for; not for `none`."""
        if self.name == "earliest":
            return OffsetTime.EARLIEST
        if self.name == "latest":
            return OffsetTime.LATEST
        return max(0, wall_ms - self.duration_ms)

    @property
    def is_none(self) -> bool:
        return self.name == "none"


EARLIEST: Final = OffsetReset("earliest")
LATEST: Final = OffsetReset("latest")
NONE: Final = OffsetReset("none")


def parse_offset_reset(text: str) -> OffsetReset:
    """The strategy that a setting's value stands for; raises `SettingError`."""
    lowered = text.strip().lower()
    for strategy in (EARLIEST, LATEST, NONE):
        if lowered == strategy.name:
            return strategy
    if lowered.startswith(_BY_DURATION):
        match = _DURATION.fullmatch(text.strip()[len(_BY_DURATION) :])
        if match is not None and any(match.groups()):
            parts = match.groupdict(default="0")
            duration_ms = sum(float(parts[unit]) * ms for unit, ms in _MS_OF.items())
            return OffsetReset("by_duration", int(duration_ms))
    raise SettingError(
        f"The setting auto.offset.reset cannot be {text!r}: it must be earliest, latest, none or "
        "by_duration:PnDTnHnMn.nS, as in by_duration:PT6H."
    )
