"""SetConfigs (private key 10001): a broker has the controller write the settings of a resource.

Versions served: 0.

What brokers can have was checked by the broker that asks; what topics can have is checked here.
"""

from __future__ import annotations

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.settings import SettingError
from headwater.broker.api_handler import ApiHandler
from headwater.broker.context import RequestContext
from headwater.cluster.image import ConfigResource, ResourceKind
from headwater.wire.api_keys import ApiKey
from headwater.wire.cluster_messages.set_configs import SetConfigsRequest, SetConfigsResponse


async def handle(request: SetConfigsRequest, context: RequestContext) -> SetConfigsResponse:
    try:
        version = await context.controller.set_configs(
            _resource(request),
            {entry.name: entry.value for entry in request.entries},
            version=request.version,
        )
    except SettingError as error:
        return _refused(ErrorCode.INVALID_CONFIG, str(error), context)
    except KafkaError as error:
        return _refused(error.code, str(error), context)
    return SetConfigsResponse(version=version)


def _resource(request: SetConfigsRequest) -> ConfigResource:
    try:
        kind = ResourceKind(request.kind)
    except ValueError:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"There is no kind {request.kind} of resources."
        ) from None
    name = request.resource_name
    if kind is ResourceKind.BROKER and name and not (name.isascii() and name.isdecimal()):
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"{name!r} is not the number of a broker.")
    return ConfigResource(kind, name)


def _refused(code: ErrorCode, reason: str, context: RequestContext) -> SetConfigsResponse:
    context.record_error(code)
    return SetConfigsResponse(error_code=code, error_message=reason)


API = ApiHandler(ApiKey.SET_CONFIGS, handle)
