"""IncrementalAlterConfigs (key 44): change some settings and leave the others.

Of topics, brokers and loggers. Each resource is changed as a whole or not at all.
"""

from collections.abc import Iterator

from headwater.broker.context import RequestContext
from headwater.broker.handlers.cards.all_cards import CARDS
from headwater.broker.requests.api_handler import ApiHandler
from headwater.broker.settings.config_changes import ConfigOperation
from headwater.broker.topics.config_alteration import ResourceChange, alter_configs, told_change
from headwater.wire.api_keys import ApiKey
from headwater.wire.messages.incremental_alter_configs import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)


async def handle(
    request: IncrementalAlterConfigsRequest, context: RequestContext
) -> IncrementalAlterConfigsResponse:
    changes = _changes(request)
    outcomes = await alter_configs(context.broker, changes, validate_only=request.validate_only)
    return IncrementalAlterConfigsResponse(
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


def _changes(request: IncrementalAlterConfigsRequest) -> list[ResourceChange]:
    return [
        ResourceChange(
            resource.resource_type,
            resource.resource_name,
            [
                ConfigOperation(each.name, each.config_operation, each.value)
                for each in resource.configs
            ],
        )
        for resource in request.resources
    ]


def _deeds(
    request: IncrementalAlterConfigsRequest, response: IncrementalAlterConfigsResponse
) -> Iterator[str]:
    if not request.validate_only:
        for change, outcome in zip(_changes(request), response.responses, strict=True):
            if not outcome.error_code:
                yield told_change(change)


API = ApiHandler(CARDS[ApiKey.INCREMENTAL_ALTER_CONFIGS], handle, deeds=_deeds)
