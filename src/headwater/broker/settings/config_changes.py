"""What a change of settings makes of the present ones, and whether it may be made.

`merge` is pure: the texts that are set, and operations on them, give the texts that shall be set.
The checks then look at the result as a whole, values included. A topic's errors have the code
INVALID_CONFIG. A broker's have INVALID_REQUEST, which is what Kafka answers there; only a name that
does not exist is INVALID_CONFIG too, where Kafka would keep it for plugins that are not here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from enum import IntEnum
from typing import Final, NamedTuple

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.settings import (
    DynamicScope,
    Setting,
    SettingError,
    SettingKind,
    SettingTable,
    SettingValues,
)
from headwater.broker.settings.broker_settings import BrokerSettings
from headwater.broker.settings.network_settings import host_limits
from headwater.broker.settings.tables import BROKER_SETTINGS, TOPIC_SETTINGS
from headwater.storage.log_settings import log_config_of

_THREAD_COUNTS: Final = (
    "num.io.threads",
    "background.threads",
    "num.network.threads",
    "num.replica.fetchers",
    "num.recovery.threads.per.data.dir",
    "log.cleaner.threads",
)
_THROTTLED: Final = (
    "leader.replication.throttled.replicas",
    "follower.replication.throttled.replicas",
)
_REPLICA: Final = re.compile(r"[0-9]+:[0-9]+", re.ASCII)


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


def check_topic_configs(settings: BrokerSettings, configs: Mapping[str, str]) -> None:
    """Whether a topic can have these settings; raises `SettingError`."""
    inherited = TOPIC_SETTINGS.inherit(settings.values)
    values = inherited.with_overrides(configs)
    log_config_of(values)
    if "remote.storage.enable" in configs and values.boolean("remote.storage.enable"):
        raise SettingError(
            "The setting remote.storage.enable cannot be true, because there is no tiered storage."
        )
    for name in _THROTTLED:
        items = values.texts(name)
        if items != ("*",) and not all(_REPLICA.fullmatch(item) for item in items):
            raise SettingError(
                f"The setting {name} cannot be {','.join(items)!r}: it must be * or a list of "
                "partition:broker."
            )


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
        values = settings.static.with_overrides(
            {name: text for name, text in configs.items() if name in BROKER_SETTINGS}
        )
        log_config_of(TOPIC_SETTINGS.inherit(values))
        host_limits(values)
    except SettingError as error:
        raise _invalid_request(str(error)) from None
    _check_thread_counts(settings, values, [name for name in changed if name in configs])


def check_dynamic(row: Setting, *, is_cluster_wide: bool) -> None:
    """Whether the setting may be changed while brokers run."""
    if row.dynamic is DynamicScope.READ_ONLY:
        raise _invalid_request(
            f"The setting {row.name} cannot be changed while the broker runs; set it in its "
            "configuration and start it again."
        )
    if row.dynamic is DynamicScope.PER_BROKER and is_cluster_wide:
        raise _invalid_request(
            f"The setting {row.name} can be changed for single brokers only, not for all at once."
        )


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
