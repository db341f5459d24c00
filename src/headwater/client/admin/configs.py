"""Admin operations on settings: describe them with their origin, and change single ones."""

from collections.abc import Collection, Mapping, Sequence
from enum import IntEnum
from typing import Final, NamedTuple

from headwater.base.errors import KafkaError
from headwater.client.admin.config_values import ConfigValue, config_text
from headwater.client.admin.outcomes import Operations, Outcomes, raised_or_returned, settle
from headwater.client.errors import refusal, topic_refusal
from headwater.client.given_items import given_items, given_mapping, given_names
from headwater.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
)
from headwater.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from headwater.wire.messages.list_config_resources import (
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

#: The name of the broker resource that holds what applies to all brokers of the cluster.
ALL_BROKERS: Final = ""
_EXAMPLE: Final = (
    "{ConfigResource(ResourceType.TOPIC, 'orders'): [ConfigChange('retention.ms', 3600000)]}"
)


class ResourceType(IntEnum):
    """What has settings, by its number in the protocol."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


_OF_ONE_BROKER: Final = frozenset({ResourceType.BROKER, ResourceType.BROKER_LOGGER})


class ConfigSource(IntEnum):
    """Where a setting's value comes from."""

    UNKNOWN = 0
    DYNAMIC_TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    DYNAMIC_BROKER_LOGGER_CONFIG = 6
    DYNAMIC_CLIENT_METRICS_CONFIG = 7
    DYNAMIC_GROUP_CONFIG = 8


_SOURCES: Final = {int(source): source for source in ConfigSource}


class ConfigOperation(IntEnum):
    """How a setting is changed; the last two are for settings that are lists."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class ConfigResource(NamedTuple):
    type: ResourceType
    name: str

    @property
    def broker_id(self) -> int | None:
        """The broker that alone can answer for this resource, if there is one."""
        if self.type not in _OF_ONE_BROKER or self.name == ALL_BROKERS:
            return None
        return int(self.name)

    def __str__(self) -> str:
        if self.type is ResourceType.BROKER and self.name == ALL_BROKERS:
            return "The default of all brokers"
        kind = self.type.name.lower().replace("_", " ")
        return f"{kind.capitalize()} {self.name!r}"


class ConfigSynonym(NamedTuple):
    """A place that could have given the value, in the order in which they are looked at."""

    name: str
    value: str | None
    source: ConfigSource


class ConfigEntry(NamedTuple):
    name: str
    value: str | None
    source: ConfigSource
    is_read_only: bool
    is_sensitive: bool
    synonyms: tuple[ConfigSynonym, ...]
    documentation: str | None


class ConfigChange(NamedTuple):
    """What becomes of one setting; numbers, True and False are written as text."""

    name: str
    value: ConfigValue
    operation: ConfigOperation = ConfigOperation.SET


class ConfigOperations(Operations):
    """See `AdminOperations`."""

    async def describe_configs(
        self,
        resources: Collection[ConfigResource],
        *,
        names: Collection[str] | None = None,
        with_documentation: bool = False,
    ) -> Outcomes[ConfigResource, list[ConfigEntry]]:
        """The settings of each resource by name, all unless `names` say which."""
        keys = None if names is None else given_names(names)

        async def ask(
            broker_id: int | None, asked: list[ConfigResource]
        ) -> Outcomes[ConfigResource, list[ConfigEntry]]:
            request = DescribeConfigsRequest(
                resources=[
                    DescribeConfigsResource(
                        resource_type=resource.type,
                        resource_name=resource.name,
                        configuration_keys=keys,
                    )
                    for resource in asked
                ],
                include_synonyms=True,
                include_documentation=with_documentation,
            )
            response = await self.connection.ask(request, DescribeConfigsResponse, broker_id)
            outcomes: Outcomes[ConfigResource, list[ConfigEntry]] = {}
            for result in response.results:
                key = ConfigResource(ResourceType(result.resource_type), result.resource_name)
                if result.error_code:
                    outcomes[key] = _refusal(key, result.error_code, result.error_message)
                else:
                    outcomes[key] = sorted(map(_entry, result.configs))
            return outcomes

        async def attempt(
            pending: list[ConfigResource],
        ) -> Outcomes[ConfigResource, list[ConfigEntry]]:
            outcomes: Outcomes[ConfigResource, list[ConfigEntry]] = {}
            for broker_id, asked in _by_broker(pending).items():
                outcomes.update(await ask(broker_id, asked))
            return outcomes

        return await settle(
            self.connection, given_items(resources, ConfigResource), attempt, "Describing settings"
        )

    async def alter_configs(
        self,
        changes: Mapping[ConfigResource, Sequence[ConfigChange]],
        *,
        validate_only: bool = False,
        raise_errors: bool = True,
    ) -> Outcomes[ConfigResource, None]:
        """Change the named settings and leave all others as they are."""
        given_items(given_mapping(changes, _EXAMPLE), ConfigResource)
        alterations = {
            resource: _alteration(resource, given_items(wanted, ConfigChange))
            for resource, wanted in changes.items()
        }

        async def ask(
            broker_id: int | None, asked: list[ConfigResource]
        ) -> Outcomes[ConfigResource, None]:
            request = IncrementalAlterConfigsRequest(
                resources=[alterations[resource] for resource in asked],
                validate_only=validate_only,
            )
            connection = self.connection
            if broker_id is None:
                response = await connection.ask_controller(request, IncrementalAlterConfigsResponse)
            else:
                response = await connection.ask(request, IncrementalAlterConfigsResponse, broker_id)
            outcomes: Outcomes[ConfigResource, None] = {}
            for result in response.responses:
                key = ConfigResource(ResourceType(result.resource_type), result.resource_name)
                outcomes[key] = (
                    _refusal(key, result.error_code, result.error_message)
                    if result.error_code
                    else None
                )
            return outcomes

        async def attempt(pending: list[ConfigResource]) -> Outcomes[ConfigResource, None]:
            outcomes: Outcomes[ConfigResource, None] = {}
            for broker_id, asked in _by_broker(pending).items():
                outcomes.update(await ask(broker_id, asked))
            return outcomes

        outcomes = await settle(self.connection, list(alterations), attempt, "Changing settings")
        return raised_or_returned(outcomes, raise_errors)

    async def list_config_resources(
        self, types: Collection[ResourceType] = ()
    ) -> list[ConfigResource]:
        """What there is that has settings, of all types unless named."""

        async def attempt() -> list[ConfigResource]:
            request = ListConfigResourcesRequest(
                resource_types=[int(wanted) for wanted in given_items(types, int)]
            )
            response = await self.connection.ask(request, ListConfigResourcesResponse)
            if response.error_code:
                raise refusal(response.error_code, None, "Resources with settings")
            return sorted(
                ConfigResource(ResourceType(found.resource_type), found.resource_name)
                for found in response.config_resources
            )

        return await self.connection.retrying(attempt, "Listing what has settings")


def _by_broker(resources: list[ConfigResource]) -> dict[int | None, list[ConfigResource]]:
    groups: dict[int | None, list[ConfigResource]] = {}
    for resource in resources:
        groups.setdefault(resource.broker_id, []).append(resource)
    return groups


def _refusal(resource: ConfigResource, error_code: int, message: str | None) -> KafkaError:
    if resource.type is ResourceType.TOPIC:
        return topic_refusal(error_code, message, resource.name)
    return refusal(error_code, message, str(resource))


def _alteration(resource: ConfigResource, changes: Sequence[ConfigChange]) -> AlterConfigsResource:
    return AlterConfigsResource(
        resource_type=resource.type,
        resource_name=resource.name,
        configs=[
            AlterableConfig(
                name=change.name,
                config_operation=change.operation,
                value=config_text(change.name, change.value),
            )
            for change in changes
        ],
    )


def _entry(config: DescribeConfigsResourceResult) -> ConfigEntry:
    return ConfigEntry(
        name=config.name,
        value=config.value,
        source=_SOURCES.get(config.config_source, ConfigSource.UNKNOWN),
        is_read_only=config.read_only,
        is_sensitive=config.is_sensitive,
        synonyms=tuple(
            ConfigSynonym(
                synonym.name, synonym.value, _SOURCES.get(synonym.source, ConfigSource.UNKNOWN)
            )
            for synonym in config.synonyms
        ),
        documentation=config.documentation,
    )
