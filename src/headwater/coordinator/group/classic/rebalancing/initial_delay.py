"""How long the first rebalance of a new group waits for more members to come.

A cluster's consumers are many and start together, so a wait spares them rebalances. On a single
broker there is a developer in front of it, and a wait is all that there is to notice: there it
waits only if somebody said so.
"""

from __future__ import annotations

from typing import Final

from headwater.coordinator.group.environment import GroupEnvironment

_SETTING: Final = "group.initial.rebalance.delay.ms"


def initial_delay_ms(environment: GroupEnvironment) -> int:
    settings = environment.settings
    if not settings.is_set(_SETTING) and len(environment.image().brokers) <= 1:
        return 0
    return max(settings.integer(_SETTING), 0)
