"""What holds for a consumer group, and whether a group can be given it.

A group has what was set for it, or else what brokers say to all groups. Brokers also say how far a
group may go. What is outside of that is refused; if the bounds were changed behind it, the nearest
that is allowed holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from headwater.base.settings import SettingError, SettingValues
from headwater.broker.settings.rows.groups import GROUP_SETTINGS

_HEARTBEAT: Final = "consumer.heartbeat.interval.ms"
_SESSION: Final = "consumer.session.timeout.ms"
#: The settings of brokers that bound a group's.
_BOUNDS: Final = {
    _HEARTBEAT: (
        "group.consumer.min.heartbeat.interval.ms",
        "group.consumer.max.heartbeat.interval.ms",
    ),
    _SESSION: ("group.consumer.min.session.timeout.ms", "group.consumer.max.session.timeout.ms"),
}


def group_integer(broker: SettingValues, overrides: Mapping[str, str], name: str) -> int:
    """A setting of a group that has these `overrides`, which are sound."""
    [synonym] = GROUP_SETTINGS[name].synonyms
    if name not in overrides:
        return broker.integer(synonym.name)
    lowest, highest = _bounds(broker, name)
    return min(max(GROUP_SETTINGS.parse(overrides).integer(name), lowest), highest)


def check_group_setting(name: str, text: str) -> None:
    """Whether any group could be given this; raises `SettingError`."""
    GROUP_SETTINGS[name].parse(text)


def check_group_configs(
    broker: SettingValues, configs: Mapping[str, str], present: Mapping[str, str]
) -> None:
    """Whether a group that has `present` can have these settings; raises `SettingError`."""
    sound: dict[str, str] = {}
    for name, text in configs.items():
        is_new = present.get(name) != text
        try:
            check_group_setting(name, text)
        except SettingError:
            # What is stored already and ignored is in the way of no other change.
            if is_new:
                raise
            continue
        sound[name] = text
        if is_new:
            _check_bounds(broker, name, GROUP_SETTINGS.parse(sound).integer(name))
    session_ms = group_integer(broker, sound, _SESSION)
    if sound and session_ms <= group_integer(broker, sound, _HEARTBEAT):
        raise SettingError(f"The setting {_SESSION} must be greater than {_HEARTBEAT}.")


def _check_bounds(broker: SettingValues, name: str, value: int) -> None:
    lowest, highest = _bounds(broker, name)
    if not lowest <= value <= highest:
        raise SettingError(
            f"The setting {name} cannot be {value}: {_BOUNDS[name][0]} and {_BOUNDS[name][1]} "
            f"allow {lowest} to {highest}."
        )


def _bounds(broker: SettingValues, name: str) -> tuple[int, int]:
    lowest, highest = _BOUNDS[name]
    return broker.integer(lowest), broker.integer(highest)
