"""What the world outside gives a producer, and a simulator instead of it."""

from __future__ import annotations

import random
from typing import NamedTuple

from headwater.base.clocks import Clock
from headwater.client.cluster_connection import Connect


class Surroundings(NamedTuple):
    clock: Clock
    connect: Connect
    generator: random.Random
