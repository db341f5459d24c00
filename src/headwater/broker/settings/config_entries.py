"""Settings as DescribeConfigs shows them: each with its value, where that comes from, and what
would hold if it went away.

The synonyms of an entry are all values that somebody gave it, the one that holds first: of a topic
or a group, of this broker, of all brokers, from the broker's start, the default; then the same for
each setting that stands in for it. An entry that has no value has no synonyms. A stored value that
is ignored is not shown, since nobody goes by it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from enum import IntEnum
from typing import NamedTuple

from headwater.base.settings import DynamicScope, Setting, SettingKind, SettingTable
from headwater.broker.settings.broker_settings import BrokerSettings
from headwater.broker.settings.rows.client_metrics import CLIENT_METRICS_SETTINGS
from headwater.broker.settings.rows.groups import GROUP_SETTINGS
from headwater.broker.settings.tables import BROKER_SETTINGS, TOPIC_SETTINGS


class ConfigSource(IntEnum):
    """Where a value comes from; the numbers are the protocol's."""

    DYNAMIC_TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    DYNAMIC_BROKER_LOGGER_CONFIG = 6
    DYNAMIC_CLIENT_METRICS_CONFIG = 7
    DYNAMIC_GROUP_CONFIG = 8


class ConfigSynonym(NamedTuple):
    name: str
    value: str | None
    source: ConfigSource


class ConfigEntry(NamedTuple):
    name: str
    value: str | None
    source: ConfigSource
    is_read_only: bool
    is_sensitive: bool
    #: A `SettingKind`, 0 where there is none.
    kind: int
    doc: str
    synonyms: tuple[ConfigSynonym, ...] = ()


def broker_entries(
    settings: BrokerSettings, names: Collection[str] | None = None
) -> Iterator[ConfigEntry]:
    """All of a broker's settings, or those of `names` that exist."""
    for row in BROKER_SETTINGS:
        if names is None or row.name in names:
            # A setting that only its synonyms give a value is shown without one, as Kafka does.
            own = _broker_synonyms(settings, row)
            yield _entry(row, (*own, *_stand_ins(settings, row)) if own else ())


def broker_default_entries(
    settings: BrokerSettings, names: Collection[str] | None = None
) -> Iterator[ConfigEntry]:
    """What is set for all brokers at run time; nothing else has a value for all of them."""
    for name, text in settings.default_overrides.items():
        if names is None or name in names:
            row = BROKER_SETTINGS[name]
            source = ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG
            yield _entry(row, (ConfigSynonym(name, _shown(row, text), source),))


def topic_entries(
    settings: BrokerSettings,
    overrides: Mapping[str, str],
    names: Collection[str] | None = None,
) -> Iterator[ConfigEntry]:
    """All settings of a topic that has these `overrides`, or those of `names` that exist."""
    source = ConfigSource.DYNAMIC_TOPIC_CONFIG
    return _inheriting_entries(TOPIC_SETTINGS, source, settings, overrides, names)


def group_entries(
    settings: BrokerSettings, group_id: str, names: Collection[str] | None = None
) -> Iterator[ConfigEntry]:
    """All settings of a group, which need not exist, or those of `names` that exist."""
    overrides = settings.group_overrides(group_id)
    source = ConfigSource.DYNAMIC_GROUP_CONFIG
    return _inheriting_entries(GROUP_SETTINGS, source, settings, overrides, names)


def client_metrics_entries(
    settings: BrokerSettings, name: str, names: Collection[str] | None = None
) -> Iterator[ConfigEntry]:
    """What a subscription to clients' metrics says. Its defaults are nobody's, as in Kafka."""
    overrides = settings.client_metrics_overrides(name)
    for row in CLIENT_METRICS_SETTINGS:
        if names is not None and row.name not in names:
            continue
        if row.name in overrides:
            source = ConfigSource.DYNAMIC_CLIENT_METRICS_CONFIG
            yield _entry(row, (ConfigSynonym(row.name, _shown(row, overrides[row.name]), source),))
        else:
            yield _entry(row, ())._replace(value=row.render(row.default))


def _inheriting_entries(
    table: SettingTable,
    source: ConfigSource,
    settings: BrokerSettings,
    overrides: Mapping[str, str],
    names: Collection[str] | None,
) -> Iterator[ConfigEntry]:
    """What follows the broker where there is no override, which comes from `source`."""
    for row in table:
        if names is not None and row.name not in names:
            continue
        inherited = list(_stand_ins(settings, row))
        if row.name in overrides:
            text = _shown(row, overrides[row.name])
            inherited.insert(0, ConfigSynonym(row.name, text, source))
        if not row.synonyms and row.default is not None:
            text = row.render(row.default)
            inherited.append(ConfigSynonym(row.name, text, ConfigSource.DEFAULT_CONFIG))
        yield _entry(row, tuple(inherited))


def _entry(row: Setting, synonyms: tuple[ConfigSynonym, ...]) -> ConfigEntry:
    value, source = None, ConfigSource.DEFAULT_CONFIG
    if synonyms:
        value, source = _in_unit_of(row, synonyms[0]), synonyms[0].source
    return ConfigEntry(
        name=row.name,
        value=value,
        source=source,
        is_read_only=row.dynamic is DynamicScope.READ_ONLY,
        is_sensitive=row.kind is SettingKind.PASSWORD,
        kind=row.kind,
        doc=row.doc,
        synonyms=synonyms,
    )


def _in_unit_of(row: Setting, chosen: ConfigSynonym) -> str | None:
    """The value of a synonym as the row counts it, such as hours as milliseconds."""
    for synonym in row.synonyms:
        if synonym.name == chosen.name and synonym.multiplier != 1 and chosen.value is not None:
            return str(synonym.value_from(int(chosen.value)))
    return chosen.value


def _stand_ins(settings: BrokerSettings, row: Setting) -> Iterator[ConfigSynonym]:
    for synonym in row.synonyms:
        yield from _broker_synonyms(settings, BROKER_SETTINGS[synonym.name])


def _broker_synonyms(settings: BrokerSettings, row: Setting) -> tuple[ConfigSynonym, ...]:
    """The values that a broker's setting has, under its own name."""
    found: list[ConfigSynonym] = []
    for configs, source in (
        (settings.broker_overrides, ConfigSource.DYNAMIC_BROKER_CONFIG),
        (settings.default_overrides, ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG),
    ):
        if row.name in configs:
            found.append(ConfigSynonym(row.name, _shown(row, configs[row.name]), source))
    if row.name in settings.static.sources:
        text = _hidden(row, settings.static.render(row.name))
        found.append(ConfigSynonym(row.name, text, ConfigSource.STATIC_BROKER_CONFIG))
    if row.default is not None:
        text = _hidden(row, row.render(row.default))
        found.append(ConfigSynonym(row.name, text, ConfigSource.DEFAULT_CONFIG))
    return tuple(found)


def _shown(row: Setting, text: str) -> str | None:
    """A text that holds, in its plain form."""
    return _hidden(row, row.render(row.parse(text)))


def _hidden(row: Setting, text: str | None) -> str | None:
    return None if row.kind is SettingKind.PASSWORD else text
