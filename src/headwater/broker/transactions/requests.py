"""What the handlers of transactional requests have in common."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from headwater.base.errors import ErrorCode, KafkaError
from headwater.broker.context import BrokerContext, RequestContext
from headwater.coordinator.txn.transaction_metadata import ProducerIdNeededError

R = TypeVar("R")


async def with_producer_id(
    broker: BrokerContext, attempt: Callable[[int | None], Awaitable[R]]
) -> R:
    """Try something that mostly does without a new producer id, and with one if it does not."""
    try:
        return await attempt(None)
    except ProducerIdNeededError:
        return await attempt(await broker.producer_ids.next_id())


def error_code(error: KafkaError, context: RequestContext, *, fenced_since: int) -> ErrorCode:
    """What the client is told; before that version it does not know PRODUCER_FENCED."""
    code = error.code
    if code is ErrorCode.PRODUCER_FENCED and context.api_version < fenced_since:
        code = ErrorCode.INVALID_PRODUCER_EPOCH
    return code
