"""Controlled shutdown: before a broker stops, the controller gives its leaderships to others.

So clients find the new leaders at once, instead of after a session has run out. When the broker has
signed off, they take it out of their ISRs. What nobody else can lead stays without a leader until
the broker is back. A controller that cannot be asked is asked again,
`controlled.shutdown.max.retries` times; then the broker stops all the same.
"""

from __future__ import annotations

import asyncio
import logging

from headwater.base.errors import ErrorCode, KafkaError
from headwater.broker.context import BrokerContext
from headwater.wire.messages.broker_heartbeat import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
)

_logger = logging.getLogger(__name__)


async def hand_over_leaderships(context: BrokerContext) -> None:
    """Ask the controller to do without this broker; returns when it does, or cannot be asked."""
    settings = context.settings
    if not settings.boolean("controlled.shutdown.enable"):
        return
    retries_left = settings.integer("controlled.shutdown.max.retries")
    while len(context.image.brokers) > 1:
        try:
            await _ask(context)
            return
        except KafkaError as error:
            if retries_left == 0:
                _logger.warning("The broker stops without handing over: %s", error)
                return
        retries_left -= 1
        await asyncio.sleep(settings.integer("controlled.shutdown.retry.backoff.ms") / 1000)


async def _ask(context: BrokerContext) -> None:
    request = BrokerHeartbeatRequest(
        broker_id=context.node_id,
        broker_epoch=context.member.broker.broker_epoch,
        want_shut_down=True,
    )
    timeout_s = context.settings.integer("request.timeout.ms") / 1000
    response: BrokerHeartbeatResponse = await context.channels.send_to_controller(
        request, timeout_s
    )
    if response.error_code:
        raise KafkaError(ErrorCode.from_wire(response.error_code))
