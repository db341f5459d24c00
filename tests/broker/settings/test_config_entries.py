"""Settings as DescribeConfigs shows them, as Apache Kafka 4.3 answers in the same situation."""

from headwater.base.settings import SettingKind
from headwater.broker.settings.broker_settings import BrokerSettings
from headwater.broker.settings.config_entries import (
    ConfigEntry,
    ConfigSource,
    broker_default_entries,
    broker_entries,
    topic_entries,
)
from headwater.broker.settings.tables import BROKER_SETTINGS, TOPIC_SETTINGS
from tests.support.fakes.peers.config_image import FakeConfigImage

TOPIC = ConfigSource.DYNAMIC_TOPIC_CONFIG
BROKER = ConfigSource.DYNAMIC_BROKER_CONFIG
ALL_BROKERS = ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG
STATIC = ConfigSource.STATIC_BROKER_CONFIG
DEFAULT = ConfigSource.DEFAULT_CONFIG


def settings_with(image: FakeConfigImage | None = None, **texts: str) -> BrokerSettings:
    names = {name.replace("_", "."): text for name, text in texts.items()}
    settings = BrokerSettings.from_texts({"node.id": "1", **names})
    settings.take_image(image or FakeConfigImage())
    return settings


def broker_entry(settings: BrokerSettings, name: str) -> ConfigEntry:
    (entry,) = broker_entries(settings, [name])
    return entry


def topic_entry(settings: BrokerSettings, name: str, **overrides: str) -> ConfigEntry:
    texts = {key.replace("_", "."): text for key, text in overrides.items()}
    (entry,) = topic_entries(settings, texts, [name])
    return entry


def test_all_settings_are_shown_and_none_that_do_not_exist() -> None:
    settings = settings_with()
    assert [entry.name for entry in broker_entries(settings)] == [r.name for r in BROKER_SETTINGS]
    assert [entry.name for entry in topic_entries(settings, {})] == [r.name for r in TOPIC_SETTINGS]
    assert list(broker_entries(settings, ["nonsense"])) == []
    assert list(topic_entries(settings, {}, ["nonsense"])) == []


def test_a_brokers_setting_shows_every_value_it_was_given() -> None:
    image = FakeConfigImage(brokers={1: {"num.io.threads": "3"}, None: {"num.io.threads": "4"}})
    entry = broker_entry(settings_with(image, num_io_threads="2"), "num.io.threads")
    assert (entry.value, entry.source, entry.kind) == ("3", BROKER, SettingKind.INT)
    assert not entry.is_read_only and not entry.is_sensitive
    assert entry.doc == BROKER_SETTINGS["num.io.threads"].doc
    assert entry.synonyms == tuple(
        ("num.io.threads", value, source)
        for value, source in (("3", BROKER), ("4", ALL_BROKERS), ("2", STATIC), ("8", DEFAULT))
    )


def test_a_setting_without_a_value_has_no_synonyms() -> None:
    entry = broker_entry(settings_with(log_retention_hours="100"), "log.retention.ms")
    assert (entry.value, entry.source, entry.synonyms) == (None, DEFAULT, ())


def test_the_other_units_stand_behind_a_value() -> None:
    image = FakeConfigImage(brokers={1: {"log.retention.ms": "5000"}})
    settings = settings_with(image, log_retention_hours="100")
    behind = (("log.retention.hours", "100", STATIC), ("log.retention.hours", "168", DEFAULT))
    entry = broker_entry(settings, "log.retention.ms")
    assert entry.synonyms == (("log.retention.ms", "5000", BROKER), *behind)
    entry = topic_entry(settings, "retention.ms", retention_ms="7")
    assert entry.synonyms == (
        ("retention.ms", "7", TOPIC),
        ("log.retention.ms", "5000", BROKER),
        *behind,
    )


def test_a_topic_shows_whom_it_follows_in_its_own_unit() -> None:
    entry = topic_entry(settings_with(log_roll_hours="77"), "segment.ms")
    assert (entry.value, entry.source) == ("277200000", STATIC)
    assert topic_entry(settings_with(), "segment.ms").value == "604800000"


def test_a_topics_list_and_its_default() -> None:
    entry = topic_entry(settings_with(), "cleanup.policy", cleanup_policy="compact, delete")
    assert (entry.value, entry.source, entry.kind) == ("compact,delete", TOPIC, SettingKind.LIST)
    assert entry.synonyms[1:] == (("log.cleanup.policy", "delete", DEFAULT),)
    entry = topic_entry(settings_with(), "leader.replication.throttled.replicas")
    assert (entry.value, entry.source) == ("", DEFAULT)


def test_the_id_is_shown_under_both_names_as_configured() -> None:
    entry = broker_entry(settings_with(), "broker.id")
    assert entry.synonyms == (("broker.id", "1", STATIC), ("broker.id", "-1", DEFAULT))
    assert entry.is_read_only
    assert broker_entry(settings_with(), "node.id").synonyms == (("node.id", "1", STATIC),)


def test_all_brokers_together_have_only_what_was_set_for_them() -> None:
    image = FakeConfigImage(
        brokers={1: {"num.io.threads": "3"}, None: {"max.connections": "9", "of.tomorrow": "1"}}
    )
    (entry,) = broker_default_entries(settings_with(image))
    assert (entry.name, entry.value, entry.source) == ("max.connections", "9", ALL_BROKERS)
    assert entry.synonyms == (("max.connections", "9", ALL_BROKERS),)
    assert list(broker_default_entries(settings_with(image), ["num.io.threads"])) == []


def test_what_is_stored_and_does_not_hold_is_not_shown_as_if_it_did() -> None:
    image = FakeConfigImage(brokers={1: {"num.io.threads": "many"}})
    entry = broker_entry(settings_with(image), "num.io.threads")
    assert (entry.value, entry.source) == ("8", DEFAULT)
