"""AlterConfigs (key 33): replace all settings of a topic or a broker.

Clients of today use IncrementalAlterConfigs instead. Levels of loggers cannot be changed so.
"""

from collections.abc import Iterator

from headwater.broker.context import RequestContext
from headwater.broker.handlers.cards.all_cards import CARDS
from headwater.broker.requests.api_handler import ApiHandler
from headwater.broker.settings.config_changes import ConfigOperation, Operation
from headwater.broker.topics.config_alteration import ResourceChange, alter_configs, told_change
from headwater.wire.api_keys import ApiKey
from headwater.wire.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)


async def handle(request: AlterConfigsRequest, context: RequestContext) -> AlterConfigsResponse:
    changes = _changes(request)
    outcomes = await alter_configs(context.broker, changes, validate_only=request.validate_only)
    return AlterConfigsResponse(
        responses=[
            AlterConfigsResourceResponse(
                error_code=error.code if error else 0,
                error_message=str(error) if error else None,
                resource_type=change.resource_type,
                resource_name=change.name,
            )
            for change, error in zip(changes, outcomes, strict=True)
        ]
    )


def _changes(request: AlterConfigsRequest) -> list[ResourceChange]:
    return [
        ResourceChange(
            resource.resource_type,
            resource.resource_name,
            [ConfigOperation(each.name, Operation.SET, each.value) for each in resource.configs],
            replaces=True,
        )
        for resource in request.resources
    ]


def _deeds(request: AlterConfigsRequest, response: AlterConfigsResponse) -> Iterator[str]:
    if not request.validate_only:
        for change, outcome in zip(_changes(request), response.responses, strict=True):
            if not outcome.error_code:
                yield told_change(change)


API = ApiHandler(CARDS[ApiKey.ALTER_CONFIGS], handle, deeds=_deeds)
