"""Changing the settings of topics, brokers, groups, clients' metrics and loggers, for both APIs.

Each resource of a request is changed on its own, all of its settings or none. The broker that is
asked works out what the settings of the resource shall be, and checks them: any broker can do so,
but of a broker only that broker itself, which clients ask for it. Then it has the controller
write them (`config_writes`). Two requests that change the same resource at once, wherever they were
made, do not undo each other: the controller writes only if the settings are still those that a
change was made for, and otherwise it is made again for the new ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Final, NamedTuple

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import validate_topic_name
from headwater.base.printable import listed, shortened
from headwater.base.settings import SettingKind
from headwater.broker.context import BrokerContext
from headwater.broker.settings.client_metrics import check_client_metrics_name
from headwater.broker.settings.config_changes import (
    ConfigOperation,
    Operation,
    check_broker_configs,
    check_distinct,
    check_stored_configs,
    check_topic_configs,
    merge,
)
from headwater.broker.settings.logger_levels import check_level, set_level
from headwater.broker.settings.rows.client_metrics import CLIENT_METRICS_SETTINGS
from headwater.broker.settings.rows.groups import GROUP_SETTINGS
from headwater.broker.settings.tables import BROKER_SETTINGS, TOPIC_SETTINGS
from headwater.broker.topics.config_writes import write_configs
from headwater.cluster.controller.config_changes import ConfigConflictError
from headwater.cluster.image.image import ConfigResource, ResourceKind

_ATTEMPTS_MAX: Final = 20
_SIGNS: Final[Mapping[int, str]] = {Operation.APPEND: "+=", Operation.SUBTRACT: "-="}


class ResourceType(IntEnum):
    """What has settings, by the protocol's numbers."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class ResourceChange(NamedTuple):
    """What a request wants of one resource."""

    resource_type: int
    name: str
    operations: Sequence[ConfigOperation]
    #: Whether settings that are not named are removed.
    replaces: bool = False


async def alter_configs(
    broker: BrokerContext, changes: Sequence[ResourceChange], *, validate_only: bool
) -> list[KafkaError | None]:
    """Make the changes, or see whether they could be made; what was wrong with each."""
    wanted = Counter((change.resource_type, change.name) for change in changes)
    outcomes: list[KafkaError | None] = []
    for change in changes:
        try:
            if wanted[change.resource_type, change.name] > 1:
                raise _invalid_request("The request names the same resource more than once.")
            await _alter(broker, change, validate_only=validate_only)
            outcomes.append(None)
        except KafkaError as error:
            outcomes.append(error)
    return outcomes


async def _alter(broker: BrokerContext, change: ResourceChange, *, validate_only: bool) -> None:
    if change.resource_type == ResourceType.TOPIC:
        resource = topic_resource(broker, change.name)
    elif change.resource_type == ResourceType.BROKER:
        resource = broker_resource(broker, change.name)
    elif change.resource_type in (ResourceType.GROUP, ResourceType.CLIENT_METRICS):
        resource = named_resource(change.resource_type, change.name)
    elif change.resource_type == ResourceType.BROKER_LOGGER and not change.replaces:
        check_own_id(broker, change.name)
        _alter_loggers(change.operations, validate_only=validate_only)
        return
    else:
        raise _invalid_request(
            f"Resources of type {change.resource_type} have no settings that can be changed so."
        )
    await _alter_stored(broker, resource, change, validate_only=validate_only)


async def _alter_stored(
    broker: BrokerContext, resource: ConfigResource, change: ResourceChange, *, validate_only: bool
) -> None:
    for _ in range(_ATTEMPTS_MAX):
        present = broker.image.config(resource)
        configs = merged_configs(broker, resource, present.configs, change)
        if validate_only or configs == present.configs:
            return
        try:
            await write_configs(broker, resource, configs, version=present.version)
        except ConfigConflictError:
            continue
        return
    raise KafkaError(
        ErrorCode.REQUEST_TIMED_OUT, "The settings kept changing while they were being changed."
    )


def merged_configs(
    broker: BrokerContext,
    resource: ConfigResource,
    present: Mapping[str, str],
    change: ResourceChange,
) -> dict[str, str]:
    """The settings of a resource after a change, checked; raises `KafkaError`."""
    settings = broker.settings
    base = {} if change.replaces else present
    if resource.kind is ResourceKind.TOPIC:
        inherited = TOPIC_SETTINGS.inherit(settings.values)
        configs = merge(base, change.operations, TOPIC_SETTINGS, inherited.optional_texts)
        check_topic_configs(settings, configs, present)
        return configs
    if resource.kind is ResourceKind.GROUP:
        inherited = GROUP_SETTINGS.inherit(settings.values)
        configs = merge(base, change.operations, GROUP_SETTINGS, inherited.optional_texts)
        check_stored_configs(settings, resource, configs, present)
        return configs
    if resource.kind is ResourceKind.CLIENT_METRICS:
        for operation in change.operations:
            if operation.operation != Operation.DELETE:
                check_client_metrics_name(operation.name)
        nothing = CLIENT_METRICS_SETTINGS.defaults()
        configs = merge(base, change.operations, CLIENT_METRICS_SETTINGS, nothing.optional_texts)
        check_stored_configs(settings, resource, configs, present)
        return configs
    values = settings.values if resource.name else settings.static
    configs = merge(base, change.operations, BROKER_SETTINGS, values.optional_texts)
    changed = [name for name in configs if configs[name] != present.get(name)]
    check_broker_configs(settings, configs, changed, is_cluster_wide=not resource.name)
    return configs


def told_change(change: ResourceChange) -> str:
    """What a change did, for the log; values only of settings that are known to be no secrets."""
    is_topic = change.resource_type == ResourceType.TOPIC
    is_logger = change.resource_type == ResourceType.BROKER_LOGGER
    table = TOPIC_SETTINGS if is_topic else BROKER_SETTINGS

    def told(name: str, operation: int, value: str | None) -> str:
        if operation == Operation.DELETE or value is None:
            return f"{name} removed"
        is_open = name in table and table[name].kind is not SettingKind.PASSWORD
        shown = shortened(value) if is_open or is_logger else "[hidden]"
        return f"{name}{_SIGNS.get(operation, '=')}{shown}"

    who = f"topic {change.name}" if is_topic else f"broker {change.name}"
    what = "log levels" if is_logger else "settings"
    verb = "replaced all" if change.replaces else "changed"
    whose = who if change.name else "all brokers"
    operations = [told(*each) for each in change.operations]
    return f"{verb} {what} of {whose}: {listed(operations) or 'none are left'}"


# -- which resource ------------------------------------------------------------------------------


def topic_resource(broker: BrokerContext, name: str) -> ConfigResource:
    """The topic of that name; raises `KafkaError` if there is none."""
    validate_topic_name(name)
    if name not in broker.image.topics:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no topic {name!r}.")
    return ConfigResource(ResourceKind.TOPIC, name)


def broker_resource(broker: BrokerContext, name: str) -> ConfigResource:
    """This broker by its number, or all brokers by the empty name."""
    if name:
        check_own_id(broker, name)
        name = str(broker.node_id)
    return ConfigResource(ResourceKind.BROKER, name)


def named_resource(resource_type: int, name: str) -> ConfigResource:
    """A group, or a subscription to clients' metrics; it need not exist."""
    if not name:
        raise _invalid_request("Groups and client metrics have names, and the request gives none.")
    return ConfigResource(ResourceKind(resource_type), name)


def check_own_id(broker: BrokerContext, name: str) -> None:
    """A broker knows its own settings and loggers only; raises `KafkaError` for another's."""
    try:
        broker_id = int(name) if name == name.strip() else None
    except ValueError:
        broker_id = None
    if broker_id is None:
        raise _invalid_request(f"{name!r} is no broker id, which is a whole number.")
    if broker_id != broker.node_id:
        raise _invalid_request(f"This is broker {broker.node_id}, and it was asked for {name}.")


# -- loggers -------------------------------------------------------------------------------------


def _alter_loggers(operations: Sequence[ConfigOperation], *, validate_only: bool) -> None:
    check_distinct(operation.name for operation in operations)
    levels: dict[str, str | None] = {}
    for name, operation, level in operations:
        if operation not in (Operation.SET, Operation.DELETE):
            raise _invalid_request("A logger's level can be set or removed, and nothing else.")
        if operation == Operation.SET and level is None:
            raise _invalid_request(f"The request gives {name} no level.")
        levels[name] = None if operation == Operation.DELETE else level
        check_level(name, levels[name])
    if not validate_only:
        for name, chosen in levels.items():
            set_level(name, chosen)


def _invalid_request(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, message)
