"""Which value of a setting holds, and who hears when it changes."""

import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.base.settings import SettingError
from headwater.broker.settings.broker_settings import BrokerSettings
from headwater.broker.settings.tables import BROKER_SETTINGS
from tests.support.fakes.peers.config_image import FakeConfigImage

THREADS = "num.io.threads"
MAYBE = st.none() | st.integers(min_value=1, max_value=100)


@given(per_broker=MAYBE, cluster_wide=MAYBE, static=MAYBE)
def test_the_nearest_value_holds(
    per_broker: int | None, cluster_wide: int | None, static: int | None
) -> None:
    def texts(value: int | None) -> dict[str, str]:
        return {} if value is None else {THREADS: str(value)}

    settings = BrokerSettings.from_texts({"broker.id": "3", **texts(static)})
    image = FakeConfigImage(
        brokers={3: texts(per_broker), None: texts(cluster_wide), 4: {THREADS: "101"}}
    )
    changed = settings.take_image(image)
    values = [value for value in (per_broker, cluster_wide, static, 8) if value is not None]
    assert settings.integer(THREADS) == values[0]
    assert changed == ({THREADS} if values[0] != (static or 8) else set())


def test_values_fall_back_when_they_are_removed() -> None:
    settings = BrokerSettings.from_texts({"broker.id": "3", THREADS: "5"})
    settings.take_image(FakeConfigImage(brokers={3: {THREADS: "6"}}))
    assert settings.integer(THREADS) == 6
    assert settings.take_image(FakeConfigImage()) == {THREADS}
    assert settings.integer(THREADS) == 5


def test_a_subscriber_hears_of_its_settings_after_they_hold() -> None:
    settings = BrokerSettings.from_texts({"broker.id": "0"})
    heard: list[tuple[frozenset[str], int]] = []
    settings.subscribe(
        [THREADS, "background.threads"],
        lambda names: heard.append((names, settings.integer(THREADS))),
    )
    settings.take_image(FakeConfigImage(brokers={None: {"max.connections": "4"}}))
    assert heard == []
    image = FakeConfigImage(brokers={None: {"max.connections": "5", THREADS: "9"}})
    settings.take_image(image)
    settings.take_image(image)
    assert heard == [(frozenset({THREADS}), 9)]


def test_nobody_subscribes_to_what_does_not_exist() -> None:
    with pytest.raises(SettingError, match=r"did you mean num\.io\.threads"):
        BrokerSettings.from_texts({}).subscribe(["num.io.thread"], lambda _: None)


def test_what_is_not_valid_in_the_image_is_skipped_and_the_rest_holds(
    caplog: pytest.LogCaptureFixture,
) -> None:
    settings = BrokerSettings.from_texts({"broker.id": "0"})
    with caplog.at_level(logging.WARNING):
        settings.take_image(
            FakeConfigImage(
                brokers={0: {THREADS: "many", "max.connections": "7", "of.tomorrow": "1"}},
                topics={"orders": {"retention.ms": "soon", "segment.ms": "5"}},
            )
        )
        config = settings.topic_config("orders")
    assert (settings.integer(THREADS), settings.integer("max.connections")) == (8, 7)
    assert (config.segment_ms, config.retention_ms) == (5, 604_800_000)
    assert len(caplog.messages) == 3


def test_contradictions_in_the_image_leave_what_was_there(caplog: pytest.LogCaptureFixture) -> None:
    settings = BrokerSettings.from_texts({"broker.id": "0"})
    lags = {"min.compaction.lag.ms": "2", "max.compaction.lag.ms": "1"}
    broker_lags = {f"log.cleaner.{name}": text for name, text in lags.items()}
    settings.take_image(FakeConfigImage(brokers={0: broker_lags}, topics={"orders": lags}))
    assert settings.integer("log.cleaner.min.compaction.lag.ms") == 0
    assert settings.topic_config("orders") == settings.topic_config("others")
    assert len(caplog.messages) == 2


def test_a_made_up_id_is_seen_under_both_names_and_selects_the_brokers_values() -> None:
    settings = BrokerSettings.from_texts({})
    assert (settings.broker_id, settings.integer("broker.id")) == (-1, -1)
    settings.identify(1001)
    assert (settings.integer("broker.id"), settings.optional_integer("node.id")) == (1001, 1001)
    settings.take_image(FakeConfigImage(brokers={1001: {THREADS: "2"}}))
    assert settings.integer(THREADS) == 2


def test_a_topic_follows_its_own_settings_then_its_brokers() -> None:
    settings = BrokerSettings.from_texts({"broker.id": "0", "log.retention.hours": "2"})
    assert settings.topic_config("orders").retention_ms == 7_200_000
    settings.take_image(FakeConfigImage(brokers={None: {"log.retention.ms": "9"}}))
    assert settings.topic_config("orders").retention_ms == 9
    settings.take_image(FakeConfigImage(topics={"orders": {"retention.ms": "4"}}))
    assert settings.topic_config("orders").retention_ms == 4
    assert settings.topic_config("others").retention_ms == 7_200_000


def test_settings_outside_of_the_log_are_inherited_too() -> None:
    settings = BrokerSettings.from_texts({"broker.id": "0", "min.insync.replicas": "2"})
    settings.take_image(FakeConfigImage(topics={"orders": {"min.insync.replicas": "3"}}))
    replicas = [
        settings.topic_values(topic).integer("min.insync.replicas") for topic in ("orders", "other")
    ]
    assert replicas == [3, 2]


def test_a_topics_config_is_made_once_until_something_changes() -> None:
    settings = BrokerSettings.from_texts({"broker.id": "0"})
    image = FakeConfigImage(topics={"orders": {"segment.ms": "5"}})
    settings.take_image(image)
    first = settings.topic_config("orders")
    assert settings.topic_config("orders") is first
    assert settings.topic_config("a") is settings.topic_config("b")
    settings.take_image(FakeConfigImage(topics={"orders": {"segment.ms": "6"}}))
    assert settings.topic_config("orders").segment_ms == 6
    settings.forget_topics(["orders", "unknown"])
    assert settings.topic_config("orders").segment_ms == 6


def test_every_kind_can_be_read() -> None:
    settings = BrokerSettings.from_texts({"broker.id": "0"})
    assert settings.boolean("auto.create.topics.enable") is True
    assert settings.number("log.cleaner.min.cleanable.ratio") == 0.5
    assert settings.text("acks.all.flush") == "auto"
    assert settings.texts("log.cleanup.policy") == ("delete",)
    assert settings.optional_text("broker.rack") is None
    assert settings.optional_texts("log.dirs") is None
    assert settings.value("num.partitions") == BROKER_SETTINGS["num.partitions"].default
