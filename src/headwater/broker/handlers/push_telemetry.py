"""PushTelemetry (key 72): the metrics that a client was asked for.

INVALID_REQUEST: no instance id, or another push behind the last one; THROTTLING_QUOTA_EXCEEDED: too
early; UNKNOWN_SUBSCRIPTION_ID: asked for something else meanwhile, the client is to ask again;
UNSUPPORTED_COMPRESSION_TYPE; TELEMETRY_TOO_LARGE: as it is, or decompressed; INVALID_RECORD: not
OpenTelemetry's MetricsData. A client that is refused goes on, and tries again an interval later.
"""

from __future__ import annotations

from headwater.base.checks import require
from headwater.broker.context import RequestContext
from headwater.broker.handlers.cards.all_cards import CARDS
from headwater.broker.handlers.get_telemetry_subscriptions import asking_client
from headwater.broker.requests.api_handler import ApiHandler
from headwater.broker.telemetry.client_telemetry import Push
from headwater.wire.api_keys import ApiKey
from headwater.wire.messages.push_telemetry import PushTelemetryRequest, PushTelemetryResponse


async def handle(request: PushTelemetryRequest, context: RequestContext) -> PushTelemetryResponse:
    broker = context.broker
    telemetry = require(broker.telemetry, "nobody receives the metrics of clients")
    await telemetry.push(
        request.client_instance_id,
        asking_client(context),
        broker.image,
        broker.clock.monotonic_ms(),
        Push(
            request.subscription_id,
            request.compression_type,
            request.terminating,
            request.metrics,
        ),
    )
    return PushTelemetryResponse()


API = ApiHandler(CARDS[ApiKey.PUSH_TELEMETRY], handle)
