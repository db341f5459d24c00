"""What users write as settings, and what they are told when they got it wrong."""

from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.base.settings import Setting, SettingError, SettingKind, SettingTable, SettingValue
from headwater.client.fetch.isolation import IsolationLevel
from headwater.client.settings.admin_settings import ADMIN_SETTINGS
from headwater.client.settings.client_config import parse_settings
from headwater.client.settings.common_settings import COMMON_SETTINGS
from headwater.client.settings.connection_settings import make_connection, retry_policy

TABLE: Final = SettingTable.combine(
    "sample",
    COMMON_SETTINGS,
    SettingTable(
        "sample",
        [
            Setting("linger.ms", SettingKind.LONG, 5, "Wait.", lower=0),
            Setting("ratio", SettingKind.DOUBLE, 0.5, "A share."),
            Setting("enable.auto.commit", SettingKind.BOOLEAN, True, "Whether."),
            Setting("acks", SettingKind.STRING, "all", "Who.", choices=("all", "1", "0")),
            Setting("group.id", SettingKind.STRING, None, "A group."),
            Setting("directory", SettingKind.STRING, None, "A place."),
            Setting("isolation.level", SettingKind.STRING, "0", "Which.", choices=("0", "1")),
        ],
    ),
)


@pytest.mark.parametrize(
    ("name", "given", "value"),
    [
        ("linger.ms", 7, 7),
        ("linger.ms", "7", 7),
        ("linger.ms", 7.0, 7),
        ("linger.ms", timedelta(seconds=2), 2000),
        ("linger.ms", None, 5),
        ("ratio", 1, 1.0),
        ("ratio", 0.25, 0.25),
        ("enable.auto.commit", False, False),
        ("enable.auto.commit", "false", False),
        ("acks", 1, "1"),
        ("acks", "all", "all"),
        ("group.id", "g", "g"),
        ("group.id", None, None),
        ("directory", Path("/a/b"), "/a/b"),
        ("isolation.level", IsolationLevel.READ_COMMITTED, "1"),
        ("bootstrap.servers", "a:1,b:2", ("a:1", "b:2")),
        ("bootstrap.servers", ["a:1", "b:2"], ("a:1", "b:2")),
        ("bootstrap.servers", {"b:2", "a:1"}, ("a:1", "b:2")),
    ],
)
def test_python_values_mean_what_their_text_means(
    name: str, given: object, value: SettingValue
) -> None:
    assert parse_settings(TABLE, {name: given}, {}).value(name) == value
    keyword = name.replace(".", "_")
    assert parse_settings(TABLE, None, {keyword: given}).value(name) == value


def test_a_keyword_wins_over_the_mapping() -> None:
    values = parse_settings(TABLE, {"linger.ms": 1, "acks": "1"}, {"linger_ms": 2})
    assert (values.integer("linger.ms"), values.text("acks")) == (2, "1")
    assert values.is_set("acks")
    assert not values.is_set("ratio")


@pytest.mark.parametrize(
    ("config", "keywords", "sentence"),
    [
        ({"linger.m": 1}, {}, "There is no sample setting 'linger.m'; did you mean linger.ms?"),
        ({}, {"linger_m": 1}, "There is no sample setting 'linger_m'; did you mean linger_ms?"),
        ({}, {"boostrap_servers": "x"}, "did you mean bootstrap_servers?"),
        ({"queue.buffering.max.ms": 1}, {}, "'queue.buffering.max.ms': use linger.ms."),
        ({}, {"queue_buffering_max_ms": 1}, "'queue_buffering_max_ms': use linger_ms."),
        ({"linger.ms": -1}, {}, "The setting linger.ms cannot be '-1'"),
        ({}, {"linger_ms": -1}, "The setting linger_ms cannot be '-1'"),
        ({}, {"linger_ms": 0.5}, "must be a whole number"),
        ({}, {"linger_ms": object}, "The setting linger_ms cannot be <class 'object'>"),
        ({}, {"acks": 2}, "must be all, 1 or 0"),
        ({}, {"ratio": timedelta(seconds=1)}, "The setting ratio cannot be"),
        ({}, {"group_id": ["g"]}, "The setting group_id cannot be ['g']: it must be text."),
        ({}, {"security_protocol": "SSL"}, "security_protocol cannot be 'SSL': this client speaks"),
        (
            {"sasl.mechanism": "PLAIN"},
            {},
            "sasl.mechanism cannot be used: this client speaks PLAIN",
        ),
        ({}, {"ssl_cafile": "x"}, "without TLS and without SASL"),
        ({}, {"nonsense": None}, "There is no sample setting 'nonsense'."),
    ],
)
def test_mistakes_are_told_in_the_users_spelling(
    config: Mapping[str, object], keywords: Mapping[str, object], sentence: str
) -> None:
    with pytest.raises(SettingError) as caught:
        parse_settings(TABLE, config, keywords)
    assert sentence in str(caught.value)


@given(st.sampled_from([row.name for row in ADMIN_SETTINGS]))
def test_defaults_can_be_given_as_they_are(name: str) -> None:
    value = ADMIN_SETTINGS[name].default
    assert parse_settings(ADMIN_SETTINGS, {name: value}, {}).value(name) == value


def test_every_setting_has_a_keyword_of_its_own() -> None:
    keywords = {row.name.replace(".", "_") for row in ADMIN_SETTINGS}
    assert len(keywords) == len(ADMIN_SETTINGS)
    assert not any("_" in row.name for row in ADMIN_SETTINGS)


def test_a_connection_is_what_the_settings_say() -> None:
    values = parse_settings(
        ADMIN_SETTINGS,
        None,
        {
            "bootstrap_servers": ["a:1", "b:2"],
            "client_id": "me",
            "request_timeout_ms": 500,
            "retry_backoff_ms": 7,
            "retry_backoff_max_ms": 70,
        },
    )
    connection = make_connection(values, timeout_s=9.0)
    assert connection.client_id == "me"
    assert (connection.timeout_s, connection.request_timeout_s) == (9.0, 0.5)
    assert connection.policy == retry_policy(values)
    assert (connection.policy.backoff_ms, connection.policy.backoff_max_ms) == (7, 70)
