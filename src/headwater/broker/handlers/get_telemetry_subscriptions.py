"""GetTelemetrySubscriptions (key 71): which of its metrics a client is to push, and how often.

A client that has no id yet is given one, which is its own for as long as it lives, at all brokers.
We ask for values since the beginning, where Kafka asks for those since the last push: so nothing is
lost with a push that is, or with a client that goes on at another broker. Kafka has clients push
every five minutes at least, whatever a subscription says; here `interval.ms` is what holds.
"""

from __future__ import annotations

from typing import Final

from headwater.base.checks import require
from headwater.broker.context import RequestContext
from headwater.broker.handlers.cards.all_cards import CARDS
from headwater.broker.requests.api_handler import ApiHandler
from headwater.wire.api_keys import ApiKey
from headwater.wire.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)
from headwater.wire.records.compression import Compression

#: The best first. Not compressed is always allowed.
_COMPRESSIONS: Final = (Compression.ZSTD, Compression.LZ4, Compression.GZIP, Compression.SNAPPY)
_NOT_TOLD: Final = ("unknown", "unknown")


def asking_client(context: RequestContext) -> dict[str, str]:
    """What a broker knows of a client, by the names that subscriptions have for it."""
    software = context.connection.state.get("client_software", _NOT_TOLD)
    name, version = software if isinstance(software, tuple) else _NOT_TOLD
    host, port = context.connection.peer[:2]
    known = {
        "client_software_name": name,
        "client_software_version": version,
        "client_source_address": host,
        "client_source_port": str(port),
    }
    return known if context.client_id is None else {"client_id": context.client_id, **known}


async def handle(
    request: GetTelemetrySubscriptionsRequest, context: RequestContext
) -> GetTelemetrySubscriptionsResponse:
    broker = context.broker
    telemetry = require(broker.telemetry, "nobody receives the metrics of clients")
    instance_id, asked = telemetry.ask(
        request.client_instance_id,
        asking_client(context),
        broker.image,
        broker.clock.monotonic_ms(),
    )
    return GetTelemetrySubscriptionsResponse(
        client_instance_id=instance_id,
        subscription_id=asked.subscription_id,
        accepted_compression_types=list(_COMPRESSIONS),
        push_interval_ms=asked.interval_ms,
        telemetry_max_bytes=telemetry.bytes_max,
        delta_temporality=False,
        requested_metrics=list(asked.prefixes),
    )


API = ApiHandler(CARDS[ApiKey.GET_TELEMETRY_SUBSCRIPTIONS], handle)
