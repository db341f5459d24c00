"""What a change of settings makes of the present ones, and whether it may be made.

`merge` is pure: the texts that are set, and operations on them, give the texts that shall be set.
The checks then look at the result as a whole, values included. A topic's errors have the code
INVALID_CONFIG. A broker's have INVALID_REQUEST, which is what Kafka answers there; only a name that
does not exist is INVALID_CONFIG too, where Kafka would keep it for plugins that are not here.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from enum import IntEnum
from functools import partial
from typing import Final, NamedTuple

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.settings import (
    Setting,
    SettingError,
    SettingKind,
    SettingTable,
    SettingValues,
)
from headwater.broker.settings.broker_settings import BrokerSettings
from headwater.broker.settings.client_metrics import check_client_metrics_setting
from headwater.broker.settings.dynamic_settings import (
    check_broker_setting,
    check_dynamic,
    check_topic_setting,
)
from headwater.broker.settings.group_settings import check_group_configs
from headwater.broker.settings.rows.network import host_limits
from headwater.broker.settings.tables import BROKER_SETTINGS, TOPIC_SETTINGS
from headwater.cluster.image.image import ConfigResource, ResourceKind
from headwater.storage.log_settings import check_cordoned_directories, log_config_of

_THREAD_COUNTS: Final = (
    "num.io.threads",
    "background.threads",
    "num.network.threads",
    "num.replica.fetchers",
    "num.recovery.threads.per.data.dir",
    "log.cleaner.threads",
)


class Operation(IntEnum):
    """What IncrementalAlterConfigs does to one setting; the numbers are the protocol's."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class ConfigOperation(NamedTuple):
    name: str
    operation: int
    value: str | None = None


def merge(
    present: Mapping[str, str],
    operations: Sequence[ConfigOperation],
    table: SettingTable,
    inherited: Callable[[str], tuple[str, ...] | None],
) -> dict[str, str]:
    """`present` after the operations; `inherited` gives the list that holds where none is set."""
    check_distinct(operation.name for operation in operations)
    merged = dict(present)
    for name, operation, value in operations:
        if operation == Operation.DELETE:
            # Also for a name that does not exist: a setting of another release can be removed.
            merged.pop(name, None)
        elif value is None:
            raise _invalid_request(f"The request gives {name} no value.")
        elif operation == Operation.SET:
            merged[name] = _normal_text(table[name], value)
        elif operation in (Operation.APPEND, Operation.SUBTRACT):
            row = table[name]
            # As keys, which keep their order, so that nothing is there twice.
            items = dict.fromkeys(_list_items(row, merged.get(name), inherited))
            change = dict.fromkeys(filter(None, (each.strip() for each in value.split(","))))
            if operation == Operation.APPEND:
                items |= change
            else:
                items = {item: None for item in items if item not in change}
            merged[name] = _normal_text(row, ",".join(items))
        else:
            raise _invalid_request(f"There is no operation {operation} on settings.")
    return merged


def check_distinct(names: Iterable[str]) -> None:
    """Refuse a request that names a setting more than once, as it could mean anything."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise _invalid_request(f"The request names {name} more than once.")
        seen.add(name)


def _list_items(
    row: Setting, text: str | None, inherited: Callable[[str], tuple[str, ...] | None]
) -> tuple[str, ...]:
    if row.kind is not SettingKind.LIST:
        raise SettingError(
            f"Nothing can be added to or taken from {row.name}, because it is no list."
        )
    if text is None:
        return inherited(row.name) or ()
    return tuple(item.strip() for item in text.split(",")) if text else ()


def _normal_text(row: Setting, text: str) -> str:
    try:
        return row.render(row.parse(text), reveal=True) or ""
    except SettingError:
        # It is for the check that follows to refuse it.
        return text


# -- topics --------------------------------------------------------------------------------------


def check_topic_configs(
    settings: BrokerSettings, configs: Mapping[str, str], present: Mapping[str, str]
) -> None:
    """Whether a topic that has `present` can have these settings; raises `SettingError`."""
    judged = _without_ignored(configs, present, check_topic_setting)
    log_config_of(TOPIC_SETTINGS.inherit(settings.values).with_overrides(judged))
    for name, text in judged.items():
        check_topic_setting(name, text)


# -- brokers -------------------------------------------------------------------------------------


def check_broker_configs(
    settings: BrokerSettings,
    configs: Mapping[str, str],
    changed: Collection[str],
    *,
    is_cluster_wide: bool,
) -> None:
    """Whether the settings of this broker, or of all brokers, can be these; raises `KafkaError`."""
    for name in changed:
        if name in configs:
            check_dynamic(BROKER_SETTINGS[name], is_cluster_wide=is_cluster_wide)
    try:
        check = partial(check_broker_setting, is_cluster_wide=is_cluster_wide)
        unchanged = {name: text for name, text in configs.items() if name not in changed}
        values = settings.static.with_overrides(_without_ignored(configs, unchanged, check))
        log_config_of(TOPIC_SETTINGS.inherit(values))
        host_limits(values)
        if "cordoned.log.dirs" in changed:
            check_cordoned_directories(values)
    except SettingError as error:
        raise _invalid_request(str(error)) from None
    _check_thread_counts(settings, values, [name for name in changed if name in configs])


def _without_ignored(
    configs: Mapping[str, str], present: Mapping[str, str], check: Callable[[str, str], None]
) -> dict[str, str]:
    """Without what is stored already and ignored by brokers: it is in the way of no other change.

    So several such settings can be deleted one by one.
    """

    def is_ignored(name: str, text: str) -> bool:
        try:
            check(name, text)
        except KafkaError:
            return True
        return False

    return {
        name: text
        for name, text in configs.items()
        if present.get(name) != text or not is_ignored(name, text)
    }


def check_stored_configs(
    settings: BrokerSettings,
    resource: ConfigResource,
    configs: Mapping[str, str],
    present: Mapping[str, str],
) -> None:
    """Whether the controller may write these for anything but a topic.

    The broker that asks for it has looked at them as a whole, and knows more than the controller:
    what it was started with. But whoever asks, nothing is stored that no broker could obey. What
    is there already may stay, so that it is not in the way of other changes. Raises `KafkaError`.
    """
    if resource.kind is ResourceKind.GROUP:
        check_group_configs(settings.values, configs, present)
        return
    for setting, text in configs.items():
        if present.get(setting) == text:
            continue
        if resource.kind is ResourceKind.CLIENT_METRICS:
            check_client_metrics_setting(setting, text)
        else:
            check_broker_setting(setting, text, is_cluster_wide=not resource.name)


def _check_thread_counts(
    settings: BrokerSettings, values: SettingValues, changed: Collection[str]
) -> None:
    """Threads are at most doubled or halved at a time, as in Kafka, lest a slip floods a broker."""
    for name in _THREAD_COUNTS:
        if name not in changed:
            continue
        present, wanted = settings.integer(name), values.integer(name)
        if wanted != present and not max(present // 2, 1) <= wanted <= present * 2:
            raise _invalid_request(
                f"The setting {name} cannot go from {present} to {wanted} at once: it is at most "
                "doubled or halved at a time."
            )


def _invalid_request(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, message)
