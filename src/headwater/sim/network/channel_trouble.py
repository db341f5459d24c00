"""What brokers ask each other takes time and gets lost, also where there is only one of them.

A broker that coordinates a transaction and leads its partitions asks itself, at once and without
fail. In a cluster the same requests cross the network. Here they do so in a world with one broker:
each takes a while, and some are lost, on their way there or on their way back.
"""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

from headwater.broker.peers.channels import BrokerChannels
from headwater.net.peer_errors import PeerUnavailableError
from headwater.wire.schema import Message


def make_unreliable(
    channels: BrokerChannels, random: Random, *, delay_ms_max: float, loss_probability: float
) -> None:
    """Let requests through `channels` take up to twice the delay, and get lost at times."""
    send = channels.send

    async def send_with_trouble(
        broker_id: int, request: Message, timeout_s: float, version: int | None = None
    ) -> Any:
        await _travel(random, delay_ms_max, loss_probability)
        answer = await send(broker_id, request, timeout_s, version)
        await _travel(random, delay_ms_max, loss_probability)
        return answer

    channels.send = send_with_trouble  # type: ignore[method-assign]


async def _travel(random: Random, delay_ms_max: float, loss_probability: float) -> None:
    await asyncio.sleep(random.random() * delay_ms_max / 1000)
    if random.random() < loss_probability:
        raise PeerUnavailableError("The simulated connection between brokers was lost.")
