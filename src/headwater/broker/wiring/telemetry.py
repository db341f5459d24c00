"""The telemetry of clients, put together where somebody receives it.

Without a receiver clients are not told of its APIs, as with a Kafka that has no reporter for it:
else every client would ask, and ask again, for nothing.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Final

from headwater.broker.context import BrokerContext
from headwater.broker.settings.broker_settings import BrokerSettings
from headwater.wire.api_keys import ApiKey

if TYPE_CHECKING:
    from headwater.broker.telemetry.client_telemetry import ClientTelemetry

TELEMETRY_APIS: Final = frozenset({ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY})


def takes_client_metrics(settings: BrokerSettings) -> bool:
    """Whether anybody receives what clients push."""
    receivers = ("metrics.listen", "telemetry.otlp.endpoint")
    return settings.boolean("telemetry.enable") and any(map(settings.text, receivers))


def make_client_telemetry(context: BrokerContext) -> ClientTelemetry:
    """Who takes what clients push to this broker."""
    # Not imported by a broker that takes nothing.
    from headwater.broker.telemetry.client_telemetry import ClientTelemetry
    from headwater.broker.telemetry.forwarding import OtlpForwarder

    settings = context.settings
    endpoint = settings.text("telemetry.otlp.endpoint")
    return ClientTelemetry(
        settings,
        context.run_in_thread,
        lambda: uuid.UUID(int=context.random.getrandbits(128), version=4),
        OtlpForwarder(endpoint) if endpoint else None,
        is_shown=bool(settings.text("metrics.listen")),
    )
