"""DescribeConfigs (key 32): the settings of topics, brokers, groups, clients' metrics and loggers.

A broker is named by its number, all else by its name. The broker without a name stands for what was
set for all brokers at run time. A resource type that has no settings here is an error of its own.
"""

from collections.abc import Collection, Iterator

from headwater.base.errors import ErrorCode, KafkaError
from headwater.broker.context import BrokerContext, RequestContext
from headwater.broker.handlers.cards.all_cards import CARDS
from headwater.broker.requests.api_handler import ApiHandler
from headwater.broker.requests.fair_turns import DESCRIPTIONS_PER_TURN, in_turns
from headwater.broker.settings.config_entries import (
    ConfigEntry,
    ConfigSource,
    broker_default_entries,
    broker_entries,
    client_metrics_entries,
    group_entries,
    topic_entries,
)
from headwater.broker.settings.logger_levels import logger_levels
from headwater.broker.topics.config_alteration import (
    ResourceType,
    broker_resource,
    check_own_id,
    named_resource,
    topic_resource,
)
from headwater.wire.api_keys import ApiKey
from headwater.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)


async def handle(
    request: DescribeConfigsRequest, context: RequestContext
) -> DescribeConfigsResponse:
    # Who names a resource twice is told once: the answer may be a thousand times the question.
    resources = {
        (each.resource_type, each.resource_name, tuple(each.configuration_keys or ())): each
        for each in request.resources
    }
    return DescribeConfigsResponse(
        results=[
            _describe(resource, request, context)
            async for resource in in_turns(resources.values(), DESCRIPTIONS_PER_TURN)
        ]
    )


def _describe(
    resource: DescribeConfigsResource, request: DescribeConfigsRequest, context: RequestContext
) -> DescribeConfigsResult:
    result = DescribeConfigsResult(
        error_message=None,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )
    # An empty list of names asks for all of them, as null does.
    names = frozenset(resource.configuration_keys or ()) or None
    try:
        result.configs = [
            _result(entry, request)
            for entry in _entries(context.broker, resource.resource_type, result, names)
        ]
    except KafkaError as error:
        result.error_code = error.code
        result.error_message = str(error)
    return result


def _entries(
    broker: BrokerContext,
    resource_type: int,
    result: DescribeConfigsResult,
    names: Collection[str] | None,
) -> Iterator[ConfigEntry]:
    name = result.resource_name
    if resource_type == ResourceType.TOPIC:
        topic_resource(broker, name)
        return topic_entries(broker.settings, broker.settings.topic_overrides(name), names)
    if resource_type == ResourceType.BROKER:
        is_own = bool(broker_resource(broker, name).name)
        entries = broker_entries if is_own else broker_default_entries
        return entries(broker.settings, names)
    if resource_type == ResourceType.BROKER_LOGGER:
        check_own_id(broker, name)
        return _logger_entries(names)
    if resource_type == ResourceType.GROUP:
        named_resource(resource_type, name)
        return group_entries(broker.settings, name, names)
    if resource_type == ResourceType.CLIENT_METRICS:
        named_resource(resource_type, name)
        return client_metrics_entries(broker.settings, name, names)
    raise KafkaError(
        ErrorCode.INVALID_REQUEST, f"Resources of type {resource_type} have no settings here."
    )


def _logger_entries(names: Collection[str] | None) -> Iterator[ConfigEntry]:
    for name, level in logger_levels(names):
        yield ConfigEntry(
            name,
            level,
            ConfigSource.DYNAMIC_BROKER_LOGGER_CONFIG,
            is_read_only=False,
            is_sensitive=False,
            kind=0,
            doc="",
        )


def _result(entry: ConfigEntry, request: DescribeConfigsRequest) -> DescribeConfigsResourceResult:
    synonyms = entry.synonyms if request.include_synonyms else ()
    return DescribeConfigsResourceResult(
        name=entry.name,
        value=entry.value,
        read_only=entry.is_read_only,
        config_source=entry.source,
        is_sensitive=entry.is_sensitive,
        synonyms=[
            DescribeConfigsSynonym(name=synonym.name, value=synonym.value, source=synonym.source)
            for synonym in synonyms
        ],
        config_type=entry.kind,
        documentation=entry.doc if request.include_documentation else None,
    )


API = ApiHandler(CARDS[ApiKey.DESCRIBE_CONFIGS], handle)
