"""What the steps of the group protocols get from the broker around them."""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field

from headwater.cluster.image.image import ClusterImage
from headwater.coordinator.group.group_log import GroupLog
from headwater.coordinator.live_settings import LiveGroupSettings
from headwater.coordinator.timers import Timers


@dataclass(frozen=True, slots=True)
class GroupEnvironment:
    settings: LiveGroupSettings
    #: The cluster as this broker knows it now.
    image: Callable[[], ClusterImage]
    timers: Timers
    random: random.Random
    log: GroupLog = field(default_factory=GroupLog)

    def new_uuid(self) -> uuid.UUID:
        """For the ids of members."""
        return uuid.UUID(int=self.random.getrandbits(128), version=4)
