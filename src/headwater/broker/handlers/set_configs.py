"""SetConfigs (private key 10001): a broker has the controller write the settings of a resource.

The broker that asks has checked them. The controller checks them all the same: what is stored is
obeyed by every broker, at its next start at the latest.
"""

from __future__ import annotations

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.settings import SettingError
from headwater.broker.context import RequestContext
from headwater.broker.handlers.cards.all_cards import CARDS
from headwater.broker.requests.api_handler import ApiHandler
from headwater.broker.settings.config_changes import check_distinct
from headwater.cluster.image.image import ConfigResource, ResourceKind
from headwater.cluster.image.rules import ImageFaultError, check_resource
from headwater.wire.api_keys import ApiKey
from headwater.wire.cluster_messages.set_configs import SetConfigsRequest, SetConfigsResponse


async def handle(request: SetConfigsRequest, context: RequestContext) -> SetConfigsResponse:
    try:
        check_distinct(entry.name for entry in request.entries)
        version = await context.controller.set_configs(
            _resource(request),
            {entry.name: entry.value for entry in request.entries},
            version=request.version,
        )
    except SettingError as error:
        return _refused(ErrorCode.INVALID_CONFIG, str(error))
    except KafkaError as error:
        return _refused(error.code, str(error))
    return SetConfigsResponse(version=version)


def _resource(request: SetConfigsRequest) -> ConfigResource:
    try:
        kind = ResourceKind(request.kind)
    except ValueError:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"There is no kind {request.kind} of resources."
        ) from None
    resource = ConfigResource(kind, request.resource_name)
    try:
        check_resource(resource)
    except ImageFaultError as error:
        raise KafkaError(ErrorCode.INVALID_REQUEST, str(error)) from None
    return resource


def _refused(code: ErrorCode, reason: str) -> SetConfigsResponse:
    return SetConfigsResponse(error_code=code, error_message=reason)


API = ApiHandler(CARDS[ApiKey.SET_CONFIGS], handle)
