"""What holds for a broker and its topics right now.

A broker's setting has one of four values, the first that exists: what was set for this broker while
it runs, what was set for all brokers while they run, what it was started with, the row's default.
The first two come out of the cluster image, so `take_image` is called with every new one. A topic's
setting is the topic's own, or else inherited from the broker's of that moment; so is a group's.

Who reads a setting when it is needed reads it live from here. Who has to act on a change, such as
resizing a pool, subscribes. Values in the image were checked before they were written; one that
cannot be obeyed all the same is ignored with one line in the log (`stored_settings`).

The broker's composition root owns the object; everyone else reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, Protocol

from headwater.base.settings import SettingError, SettingValue, SettingValues
from headwater.broker.settings.group_settings import group_integer
from headwater.broker.settings.rows.identity import broker_id_of
from headwater.broker.settings.static_settings import static_of
from headwater.broker.settings.stored_settings import StoredSettings
from headwater.broker.settings.tables import BROKER_SETTINGS, TOPIC_SETTINGS
from headwater.storage.log_config import LogConfig
from headwater.storage.log_settings import log_config_of

ChangeCallback = Callable[[frozenset[str]], None]


class ConfigImage(Protocol):
    """The part of the cluster image that holds settings which were changed at run time."""

    def topic_configs(self, topic: str, /) -> Mapping[str, str]: ...

    def broker_configs(self, broker_id: int | None, /) -> Mapping[str, str]: ...

    def group_configs(self, group_id: str, /) -> Mapping[str, str]: ...

    def client_metrics_configs(self, name: str, /) -> Mapping[str, str]: ...


class _NothingChanged:
    """The image before there is one."""

    def topic_configs(self, topic: str, /) -> Mapping[str, str]:
        return {}

    def broker_configs(self, broker_id: int | None, /) -> Mapping[str, str]:
        return {}

    def group_configs(self, group_id: str, /) -> Mapping[str, str]:
        return {}

    def client_metrics_configs(self, name: str, /) -> Mapping[str, str]:
        return {}


class _TopicEntry(NamedTuple):
    """A topic's settings: as they are stored, what holds of them, and what that makes."""

    stored: Mapping[str, str]
    overrides: Mapping[str, str]
    values: SettingValues
    config: LogConfig


class BrokerSettings:
    """The values of all settings, read live. See the module's text."""

    def __init__(self, static: SettingValues) -> None:
        self.static = static
        self.broker_id = broker_id_of(static)
        self.image: ConfigImage = _NothingChanged()
        #: What is set for this broker and for all, as the image has it.
        self._configs: tuple[Mapping[str, str], Mapping[str, str]] = ({}, {})
        #: The part of both that holds.
        self.broker_overrides: Mapping[str, str] = {}
        self.default_overrides: Mapping[str, str] = {}
        self._stored = StoredSettings()
        self._subscriptions: list[tuple[frozenset[str], ChangeCallback]] = []
        self._set_values(static)
        if self.broker_id >= 0:
            self.identify(self.broker_id)

    @classmethod
    def from_texts(cls, texts: Mapping[str, str], source: str = "") -> BrokerSettings:
        """Settings from names and texts; raises `SettingError`."""
        return cls(static_of(texts, source))

    def identify(self, broker_id: int) -> None:
        """Tell the broker's id, where it was made up; it is then seen under both of its names."""
        self.broker_id = broker_id
        names = {"broker.id": str(broker_id), "node.id": str(broker_id)}
        self.static = self.static.with_overrides(names, "the broker's identity")
        self._set_values(self._dynamic_values())

    def take_image(self, image: ConfigImage) -> frozenset[str]:
        """Follow the image; the names of the broker's settings that have another value now."""
        self.image = image
        configs = (image.broker_configs(self.broker_id), image.broker_configs(None))
        if configs == self._configs:
            return frozenset()
        per_broker, cluster_wide = self._configs = (dict(configs[0]), dict(configs[1]))
        self.broker_overrides = self._stored.of_broker(self.broker_id, per_broker)
        self.default_overrides = self._stored.of_broker(None, cluster_wide)
        before = self.values
        self._set_values(self._dynamic_values())
        changed = frozenset(
            row.name
            for row in BROKER_SETTINGS
            if self.values.value(row.name) != before.value(row.name)
        )
        for names, callback in self._subscriptions:
            if changed & names:
                callback(changed & names)
        return changed

    def _dynamic_values(self) -> SettingValues:
        """What was set at run time over what the broker was started with."""
        values = self.static.with_overrides(self.default_overrides, "the settings of all brokers")
        return values.with_overrides(
            self.broker_overrides, f"the settings of broker {self.broker_id}"
        )

    def subscribe(self, names: Iterable[str], callback: ChangeCallback) -> None:
        """Call back with those of `names` that changed, after the new values hold."""
        wanted = frozenset(BROKER_SETTINGS[name].name for name in names)
        self._subscriptions.append((wanted, callback))

    # -- topics ----------------------------------------------------------------------------------

    def topic_values(self, topic: str) -> SettingValues:
        """All settings of a topic."""
        overrides = self.image.topic_configs(topic)
        return self._topic_entry(topic, overrides).values if overrides else self._inherited

    def topic_overrides(self, topic: str) -> Mapping[str, str]:
        """What holds of what is set for the topic itself."""
        overrides = self.image.topic_configs(topic)
        return self._topic_entry(topic, overrides).overrides if overrides else {}

    def topic_config(self, topic: str) -> LogConfig:
        """What a topic's logs are to follow; the same object until something changes."""
        overrides = self.image.topic_configs(topic)
        return self._topic_entry(topic, overrides).config if overrides else self._inherited_config

    def _topic_entry(self, topic: str, stored: Mapping[str, str]) -> _TopicEntry:
        entry = self._topics.get(topic)
        if entry is None or entry.stored != stored:
            source = f"the settings of topic {topic}"
            overrides = self._stored.of_topic(topic, stored)
            values = self._inherited.with_overrides(overrides, source)
            try:
                config = log_config_of(values, source)
            except SettingError as error:
                self._stored.ignore_all(topic, error)
                overrides, values, config = {}, self._inherited, self._inherited_config
            entry = self._topics[topic] = _TopicEntry(dict(stored), overrides, values, config)
        return entry

    def forget_topics(self, topics: Iterable[str]) -> None:
        """Drop what was remembered for topics that are deleted."""
        topics = list(topics)
        self._stored.forget_topics(topics)
        for topic in topics:
            self._topics.pop(topic, None)

    def _set_values(self, values: SettingValues) -> None:
        inherited = TOPIC_SETTINGS.inherit(values)
        try:
            inherited_config = log_config_of(inherited)
        except SettingError as error:
            self._stored.ignore_all(None, error)
            self.broker_overrides = self.default_overrides = {}
            values, inherited = self.static, TOPIC_SETTINGS.inherit(self.static)
            inherited_config = log_config_of(inherited)
        self.values = values
        self._inherited, self._inherited_config = inherited, inherited_config
        self._topics: dict[str, _TopicEntry] = {}

    # -- groups and clients ----------------------------------------------------------------------

    def group_overrides(self, group_id: str) -> Mapping[str, str]:
        """What holds of what is set for the group itself."""
        stored = self.image.group_configs(group_id)
        return self._stored.of_group(group_id, stored) if stored else {}

    def group_integer(self, group_id: str, name: str) -> int:
        """A setting of a consumer group."""
        return group_integer(self.values, self.group_overrides(group_id), name)

    def client_metrics_overrides(self, name: str) -> Mapping[str, str]:
        """What holds of a subscription to the metrics of clients."""
        stored = self.image.client_metrics_configs(name)
        return self._stored.of_client_metrics(name, stored) if stored else {}

    # -- typed reading, as `SettingValues` has it ------------------------------------------------

    def value(self, name: str) -> SettingValue:
        return self.values.value(name)

    def is_set(self, name: str) -> bool:
        return self.values.is_set(name)

    def boolean(self, name: str) -> bool:
        return self.values.boolean(name)

    def integer(self, name: str) -> int:
        return self.values.integer(name)

    def number(self, name: str) -> float:
        return self.values.number(name)

    def text(self, name: str) -> str:
        return self.values.text(name)

    def texts(self, name: str) -> tuple[str, ...]:
        return self.values.texts(name)

    def optional_integer(self, name: str) -> int | None:
        return self.values.optional_integer(name)

    def optional_text(self, name: str) -> str | None:
        return self.values.optional_text(name)

    def optional_texts(self, name: str) -> tuple[str, ...] | None:
        return self.values.optional_texts(name)
