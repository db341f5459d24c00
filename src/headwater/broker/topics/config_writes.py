"""Has the controller, whichever broker that is, write the settings of a resource."""

from __future__ import annotations

from collections.abc import Mapping

from headwater.base.errors import ErrorCode, KafkaError
from headwater.broker.context import BrokerContext
from headwater.broker.requests.forwarding import ask_controller
from headwater.broker.requests.image_waits import wait_for_image
from headwater.cluster.controller.config_changes import ConfigConflictError
from headwater.cluster.image.image import ConfigResource
from headwater.wire.cluster_messages.set_configs import (
    ConfigEntry,
    SetConfigsRequest,
    SetConfigsResponse,
)


async def write_configs(
    broker: BrokerContext, resource: ConfigResource, configs: Mapping[str, str], *, version: int
) -> None:
    """Replace all that is set for a resource, and return when this broker has heard of it.

    `version` is that of the settings from which the new ones were made. ConfigConflictError if the
    resource has others by now; this broker has mostly heard of them then. `KafkaError` otherwise.
    """
    request = SetConfigsRequest(
        kind=resource.kind,
        resource_name=resource.name,
        version=version,
        entries=[ConfigEntry(name=name, value=value) for name, value in configs.items()],
    )
    timeout_s = broker.settings.integer("request.timeout.ms") / 1000
    response: SetConfigsResponse = await ask_controller(broker, request, timeout_s)
    code = ErrorCode.from_wire(response.error_code)
    if code is ErrorCode.INVALID_UPDATE_VERSION:
        await wait_for_image(broker, lambda image: image.config(resource).version != version)
        raise ConfigConflictError(response.error_message or "")
    if code:
        raise KafkaError(code, response.error_message or "")
    written = response.version
    await wait_for_image(
        broker,
        # They are gone together with a topic that was deleted meanwhile.
        lambda image: resource not in image.configs or image.config(resource).version >= written,
    )
