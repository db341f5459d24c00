"""What `headwater configs` does, and the lines that it prints, which are those of Kafka's tool."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.printable import printable
from headwater.cli.configs.arguments import (
    BROKER_LOGGERS,
    BROKERS,
    CLIENT_METRICS,
    GROUPS,
    TOPICS,
    Entity,
)
from headwater.cli.options.nearest_name import nearest_topic
from headwater.cli.output.json_document import print_document
from headwater.client.admin import (
    ConfigChange,
    ConfigEntry,
    ConfigOperation,
    ConfigOperations,
    ConfigResource,
    ConfigSource,
    ResourceType,
    TopicOperations,
    require_all,
)
from headwater.client.connection.cluster_connection import ClusterConnection
from headwater.client.errors import UnknownTopicError

_RESOURCE_TYPES: Final = {
    TOPICS: ResourceType.TOPIC,
    BROKERS: ResourceType.BROKER,
    BROKER_LOGGERS: ResourceType.BROKER_LOGGER,
    GROUPS: ResourceType.GROUP,
    CLIENT_METRICS: ResourceType.CLIENT_METRICS,
}
#: The source of a setting that was set for just this kind of entity.
_OWN_SOURCES: Final = {
    TOPICS: ConfigSource.DYNAMIC_TOPIC_CONFIG,
    BROKERS: ConfigSource.DYNAMIC_BROKER_CONFIG,
    BROKER_LOGGERS: ConfigSource.DYNAMIC_BROKER_LOGGER_CONFIG,
    GROUPS: ConfigSource.DYNAMIC_GROUP_CONFIG,
    CLIENT_METRICS: ConfigSource.DYNAMIC_CLIENT_METRICS_CONFIG,
}


async def describe_configs(
    connection: ClusterConnection,
    entity: Entity,
    *,
    show_all: bool,
    names: Sequence[str] = (),
    as_json: bool = False,
) -> None:
    """Print the settings of an entity, or of all of its kind."""
    entities = await _entities(connection, entity)
    resources = {each: _resource(each) for each in entities}
    described = await _describe(connection, list(resources.values()), names or None)
    shown = {
        each: [entry for entry in described[resource] if show_all or _is_own(entry, each)]
        for each, resource in resources.items()
    }
    if as_json:
        print_document({"entities": [_entity_json(*item) for item in shown.items()]})
        return
    for each, entries in shown.items():
        print(_title(each, show_all))
        for entry in entries:
            print(printable(_line(entry)))


async def alter_configs(
    connection: ClusterConnection, entity: Entity, added: Mapping[str, str], deleted: Sequence[str]
) -> None:
    """Set and remove settings of one entity, all of them or none."""
    admin = ConfigOperations(connection)
    resource = _resource(entity)
    if deleted:
        [entries] = (await _describe(connection, [resource])).values()
        own = {entry.name for entry in entries if _is_own(entry, entity)}
        missing = [name for name in deleted if name not in own]
        if missing:
            raise KafkaError(
                ErrorCode.INVALID_CONFIG,
                f"{resource} has no value of its own to delete for {', '.join(missing)}.",
            )
    changes = [ConfigChange(name, value) for name, value in added.items()]
    changes += [ConfigChange(name, None, ConfigOperation.DELETE) for name in deleted]
    await admin.alter_configs({resource: changes})
    if entity.is_default:
        print("Completed updating default config for brokers in the cluster.")
    else:
        print(f"Completed updating config for {entity}.")


async def _describe(
    connection: ClusterConnection,
    resources: Sequence[ConfigResource],
    names: Sequence[str] | None = None,
) -> dict[ConfigResource, list[ConfigEntry]]:
    outcomes = await ConfigOperations(connection).describe_configs(resources, names=names)
    for resource, outcome in outcomes.items():
        if isinstance(outcome, UnknownTopicError):
            raise await nearest_topic(connection, resource.name, outcome)
    return require_all(outcomes)


async def _entities(connection: ClusterConnection, entity: Entity) -> list[Entity]:
    """The entity itself if it is one, or all of its kind."""
    if entity.name is not None or entity.is_default:
        return [entity]
    if entity.entity_type == TOPICS:
        topics = await TopicOperations(connection).list_topics()
        return [entity._replace(name=topic.name) for topic in topics]
    if entity.entity_type in (GROUPS, CLIENT_METRICS):
        kind = _RESOURCE_TYPES[entity.entity_type]
        found = await ConfigOperations(connection).list_config_resources([kind])
        return [entity._replace(name=resource.name) for resource in found]
    brokers = [entity._replace(name=str(number)) for number in sorted(connection.metadata.brokers)]
    return [*brokers, entity._replace(is_default=True)]


def _resource(entity: Entity) -> ConfigResource:
    return ConfigResource(_RESOURCE_TYPES[entity.entity_type], entity.name or "")


def _is_own(entry: ConfigEntry, entity: Entity) -> bool:
    if entity.is_default:
        return entry.source is ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG
    return entry.source is _OWN_SOURCES[entity.entity_type]


def _title(entity: Entity, show_all: bool) -> str:
    kind = "All" if show_all else "Dynamic"
    if entity.is_default:
        return f"{'All' if show_all else 'Default'} configs for brokers in the cluster are:"
    return f"{kind} configs for {entity} are:"


def _line(entry: ConfigEntry) -> str:
    synonyms = ", ".join(
        f"{synonym.source.name}:{synonym.name}={_shown(synonym.value)}"
        for synonym in entry.synonyms
    )
    sensitive = str(entry.is_sensitive).lower()
    return f"  {entry.name}={_shown(entry.value)} sensitive={sensitive} synonyms={{{synonyms}}}"


def _entity_json(entity: Entity, entries: Sequence[ConfigEntry]) -> dict[str, object]:
    """An entity with its settings; the default of all brokers has no name."""
    return {
        "entity_type": entity.entity_type,
        "entity_name": entity.name,
        "configs": [
            {
                "name": entry.name,
                "value": entry.value,
                "source": entry.source.name,
                "sensitive": entry.is_sensitive,
                "read_only": entry.is_read_only,
                "synonyms": [
                    {"name": each.name, "value": each.value, "source": each.source.name}
                    for each in entry.synonyms
                ],
            }
            for entry in entries
        ],
    }


def _shown(value: str | None) -> str:
    return "null" if value is None else value
