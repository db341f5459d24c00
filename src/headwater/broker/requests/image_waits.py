"""Waits until this broker has heard of something that the controller has done.

The controller tells all brokers of a change before it reports it done, and waits for those that
keep up. So there is mostly nothing to wait for here. A broker that is behind gets a moment more;
then the client has to see for itself, as it has to with Kafka.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from headwater.cluster.image.image import ClusterImage

if TYPE_CHECKING:
    from headwater.broker.context import BrokerContext

_WAIT_S_MAX: Final = 2.0
_PAUSE_MIN_S: Final = 0.002
_PAUSE_MAX_S: Final = 0.05


async def wait_for_image(
    broker: BrokerContext,
    condition: Callable[[ClusterImage], bool],
    limit_s: float = _WAIT_S_MAX,
) -> bool:
    """Return when the broker's image meets a condition, or has not for long; whether it does."""
    end_s = broker.loop_time() + limit_s
    pause_s = _PAUSE_MIN_S
    while not condition(broker.image):
        if broker.loop_time() >= end_s:
            return False
        await asyncio.sleep(pause_s)
        pause_s = min(2 * pause_s, _PAUSE_MAX_S)
    return True
