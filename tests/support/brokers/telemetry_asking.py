"""Clients that ask a broker what to push, and push it, through its handlers."""

from __future__ import annotations

import uuid

from headwater.base.errors import ErrorCode, KafkaError
from headwater.cluster.image.image import ConfigResource, ResourceKind
from headwater.wire.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)
from headwater.wire.messages.push_telemetry import PushTelemetryRequest, PushTelemetryResponse
from headwater.wire.records.compression import Compression
from headwater.wire.schema import ZERO_UUID
from tests.support.brokers.handler_broker import HandlerBroker


async def subscribe(broker: HandlerBroker, **configs: str) -> None:
    texts = {"metrics": "*", "interval.ms": "100"}
    texts |= {name.replace("_", "."): value for name, value in configs.items()}
    resource = ConfigResource(ResourceKind.CLIENT_METRICS, "s")
    await broker.context.controller.set_configs(resource, texts)


async def ask(
    broker: HandlerBroker, instance_id: uuid.UUID = ZERO_UUID
) -> GetTelemetrySubscriptionsResponse:
    request = GetTelemetrySubscriptionsRequest(client_instance_id=instance_id)
    return await broker.ask(request, GetTelemetrySubscriptionsResponse)


async def push(
    broker: HandlerBroker,
    told: GetTelemetrySubscriptionsResponse,
    data: bytes,
    compression: int = Compression.NONE,
    *,
    subscription_id: int | None = None,
    terminating: bool = False,
) -> ErrorCode:
    request = PushTelemetryRequest(
        client_instance_id=told.client_instance_id,
        subscription_id=told.subscription_id if subscription_id is None else subscription_id,
        terminating=terminating,
        compression_type=compression,
        metrics=data,
    )
    try:
        response = await broker.ask(request, PushTelemetryResponse)
    except KafkaError as error:
        return error.code
    return ErrorCode.from_wire(response.error_code)
