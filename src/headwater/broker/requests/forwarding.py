"""Requests that only the controller can answer, and how they get there from any broker.

A client may ask whichever broker it likes to create or delete topics. One that is not the
controller passes the request on, in the client's own version so that nothing is lost on the way,
and the answer back. It then waits until its own image shows what was done, because this is the
broker that the client asks next.

While a controller is being elected there is nobody to pass it on to. That is mostly over in a
moment, so it is tried again for a second; then the client hears NOT_CONTROLLER for each thing it
asked for. A controller that fell silent is waited for until the cluster has another one. A
controller that is lost on the way may have done what it was asked: then the second one
says so, as it says TOPIC_ALREADY_EXISTS. What brokers ask is never passed on, or two of them who
each take the other for the controller would do so forever.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from headwater.base.errors import ErrorCode, KafkaError
from headwater.broker.requests.change_log import log_deeds
from headwater.broker.requests.image_waits import wait_for_image
from headwater.wire.schema import Message

if TYPE_CHECKING:
    from headwater.broker.context import BrokerContext, RequestContext
    from headwater.broker.requests.api_handler import ApiHandler

#: How long a controller is looked for that is just changing.
_SEARCH_S: Final = 1.0
_PAUSE_MIN_S: Final = 0.005
_PAUSE_MAX_S: Final = 0.1
#: A controller that needs all of a request's time to answer that it was not enough is waited for.
_ANSWER_GRACE_S: Final = 5.0
_TIME_LIMIT_S_MAX: Final = 600.0

#: What means that the broker that was asked is not the controller, or is none at all any more.
_ELSEWHERE: Final = (ErrorCode.NOT_CONTROLLER, ErrorCode.NETWORK_EXCEPTION)


async def answer(handler: ApiHandler, request: Message, context: RequestContext) -> Message:
    """What the handler says, or for an API of the controller what the controller says."""
    response = await _answer(handler, request, context)
    if handler.deeds is not None and not context.is_broker:
        log_deeds(context, handler.deeds(request, response))
    return response


async def _answer(handler: ApiHandler, request: Message, context: RequestContext) -> Message:
    broker = context.broker
    is_seen = handler.forwarded_until
    if is_seen is None or context.is_broker:
        return await handler.handle(request, context)
    response: Message | None = None
    if not broker.member.is_controller:
        try:
            response = await ask_controller(
                broker, request, _time_limit_s(request, broker), version=context.api_version
            )
        except KafkaError as error:
            context.refusal = error
    if response is None:
        response = await handler.handle(request, context)
    # Also of a controller: it may have been deposed before it could tell anybody, itself included.
    await wait_for_image(broker, lambda image: is_seen(request, response, image))
    return response


async def ask_controller(
    broker: BrokerContext, request: Message, timeout_s: float, *, version: int | None = None
) -> Any:
    """The controller's answer; raises `KafkaError`, NOT_CONTROLLER if there is none for a while."""
    limit_s = broker.loop_time() + timeout_s
    end_s = min(broker.loop_time() + _SEARCH_S, limit_s)
    pause_s = _PAUSE_MIN_S
    while True:
        asked_s = broker.loop_time()
        try:
            response = await broker.channels.send_to_controller(request, limit_s - asked_s, version)
        except KafkaError as error:
            if error.code not in _ELSEWHERE:
                raise
            reason = str(error)
        else:
            if not is_refused(response):
                return response
            reason = "The broker that was asked is not the controller."
        now_s = broker.loop_time()
        if now_s - asked_s > _SEARCH_S:
            # There was a controller all the while, so its successor gets a moment, too.
            end_s, pause_s = min(now_s + _SEARCH_S, limit_s), _PAUSE_MIN_S
        if now_s + pause_s > end_s:
            raise KafkaError(ErrorCode.NOT_CONTROLLER, reason)
        await asyncio.sleep(pause_s)
        pause_s = min(2 * pause_s, _PAUSE_MAX_S)


def is_refused(response: Message) -> bool:
    """Whether an answer says NOT_CONTROLLER, for all that was asked for."""
    codes = list(_error_codes(response))
    return bool(codes) and all(code == ErrorCode.NOT_CONTROLLER for code in codes)


def _error_codes(response: Message) -> Iterator[int]:
    """The error code of a response; where it has none, that of each item in its lists."""
    names = {field.name for field in response.FIELDS}
    if "error_code" in names:
        yield getattr(response, "error_code")  # noqa: B009 - not every message has one
        return
    for field in response.FIELDS:
        if field.array and not isinstance(field.kind, str):
            yield from (item.error_code for item in getattr(response, field.name))


def _time_limit_s(request: Message, broker: BrokerContext) -> float:
    timeout_ms = getattr(request, "timeout_ms", None)
    if timeout_ms is None:
        timeout_ms = broker.settings.integer("request.timeout.ms")
    return float(min(max(timeout_ms, 0) / 1000 + _ANSWER_GRACE_S, _TIME_LIMIT_S_MAX))
