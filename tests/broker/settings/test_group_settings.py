"""Settings of a group: its own within the brokers' bounds, or the brokers'."""

import logging

import pytest

from headwater.base.settings import SettingError
from headwater.broker.settings.broker_settings import BrokerSettings
from headwater.broker.settings.group_settings import check_group_configs
from tests.support.fakes.peers.config_image import FakeConfigImage

SESSION, HEARTBEAT = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"


def broker(**texts: str) -> BrokerSettings:
    named = {name.replace("_", "."): text for name, text in texts.items()}
    return BrokerSettings.from_texts({"broker.id": "0", **named})


def test_a_group_has_its_own_or_what_brokers_say() -> None:
    settings = broker(group_consumer_session_timeout_ms="46000")
    settings.take_image(FakeConfigImage(groups={"billing": {SESSION: "50000", HEARTBEAT: "7000"}}))
    assert settings.group_integer("billing", SESSION) == 50_000
    assert settings.group_integer("billing", HEARTBEAT) == 7_000
    assert settings.group_integer("other", SESSION) == 46_000
    assert settings.group_integer("other", HEARTBEAT) == 5_000
    settings.take_image(FakeConfigImage())
    assert settings.group_integer("billing", SESSION) == 46_000


@pytest.mark.parametrize(
    ("stored", "held"), [("1000", 45_000), ("59999", 59_999), ("70000", 60_000)]
)
def test_what_is_outside_of_the_bounds_by_now_is_brought_inside(stored: str, held: int) -> None:
    settings = broker()
    settings.take_image(FakeConfigImage(groups={"billing": {SESSION: stored}}))
    assert settings.group_integer("billing", SESSION) == held


def test_what_no_group_could_have_is_ignored_and_told_of_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    settings = broker()
    stored = {SESSION: "soon", "share.session.timeout.ms": "1", HEARTBEAT: "6000"}
    settings.take_image(FakeConfigImage(groups={"a/b": stored}))
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            assert settings.group_integer("a/b", SESSION) == 45_000
            assert settings.group_integer("a/b", HEARTBEAT) == 6_000
    assert len(caplog.records) == 2
    assert "/config/groups/a%2Fb" in caplog.text


@pytest.mark.parametrize(
    "configs",
    [
        {SESSION: "44999"},
        {SESSION: "60001"},
        {SESSION: "x"},
        {SESSION: "0"},
        {HEARTBEAT: "4999"},
        {HEARTBEAT: "15001"},
        {"share.session.timeout.ms": "45000"},
        {"group.consumer.session.timeout.ms": "45000"},
    ],
)
def test_what_a_group_cannot_be_given(configs: dict[str, str]) -> None:
    with pytest.raises(SettingError):
        check_group_configs(broker().values, configs, {})
    # What is there already is in the way of nothing.
    check_group_configs(broker().values, {**configs, SESSION: "50000"}, configs)


def test_bounds_are_named() -> None:
    with pytest.raises(SettingError) as raised:
        check_group_configs(broker().values, {SESSION: "1"}, {})
    assert str(raised.value) == (
        "The setting consumer.session.timeout.ms cannot be 1: "
        "group.consumer.min.session.timeout.ms and group.consumer.max.session.timeout.ms allow "
        "45000 to 60000."
    )


def test_a_session_is_longer_than_the_time_between_heartbeats() -> None:
    settings = broker(
        group_consumer_min_session_timeout_ms="1000", group_consumer_max_session_timeout_ms="60000"
    )
    check_group_configs(settings.values, {SESSION: "5001"}, {})
    for configs in ({SESSION: "5000"}, {SESSION: "15000", HEARTBEAT: "15000"}):
        with pytest.raises(SettingError, match="must be greater than"):
            check_group_configs(settings.values, configs, {})
