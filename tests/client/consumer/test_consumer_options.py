"""A consumer's settings: Kafka's defaults, and what does not go together."""

from __future__ import annotations

from typing import Any

import pytest

from headwater.base.settings import SettingError
from headwater.client.consumer.async_consumer import AsyncConsumer
from headwater.client.consumer.consumer import Consumer
from headwater.client.consumer.options import ConsumerOptions, make_options
from headwater.client.environment import ClientEnvironment
from headwater.client.fetch.isolation import IsolationLevel
from headwater.client.settings.consumer_settings import CONSUMER_SETTINGS


def options(config: dict[str, object] | None = None, **keywords: Any) -> ConsumerOptions:
    return make_options(
        config,
        keywords,
        key_deserializer=None,
        value_deserializer=None,
        interceptors=(),
        environment=ClientEnvironment(),
    )


def test_the_defaults_are_those_of_kafka() -> None:
    defaults = CONSUMER_SETTINGS.defaults()
    expected = {
        "auto.commit.interval.ms": 5000,
        "auto.offset.reset": "latest",
        "enable.auto.commit": True,
        "fetch.max.bytes": 52428800,
        "fetch.max.wait.ms": 500,
        "fetch.min.bytes": 1,
        "heartbeat.interval.ms": 3000,
        "isolation.level": "read_uncommitted",
        "max.partition.fetch.bytes": 1048576,
        "max.poll.interval.ms": 300000,
        "max.poll.records": 500,
        "session.timeout.ms": 45000,
        "default.api.timeout.ms": 60000,
    }
    assert {name: defaults.value(name) for name in expected} == expected


def test_values_reach_their_places() -> None:
    made = options(
        {"group.id": "billing", "isolation.level": "read_committed"},
        fetch_min_bytes=10,
        auto_offset_reset="earliest",
        auto_commit_interval_ms=700,
    )
    assert made.isolation_level is IsolationLevel.READ_COMMITTED
    assert made.limits.min_bytes == 10
    assert made.offset_reset.name == "earliest"
    assert made.auto_commit_interval_s == 0.7
    assert made.values.text("client.id").startswith("consumer-billing-")
    assert [assignor.name for assignor in made.assignors] == ["range", "cooperative-sticky"]
    assert options().auto_commit_interval_s is None
    assert options(group_id="g", enable_auto_commit=False).auto_commit_interval_s is None


def test_an_assignor_may_be_an_object() -> None:
    from headwater.client.assignors.round_robin_assignor import RoundRobinAssignor

    own = RoundRobinAssignor()
    made = options(group_id="g", partition_assignment_strategy=[own, "sticky"])
    assert made.assignors[0] is own
    assert [assignor.name for assignor in made.assignors] == ["roundrobin", "sticky"]


@pytest.mark.parametrize(
    ("settings", "what"),
    [
        ({"heartbeat_interval_ms": 15001}, "third"),
        ({"session_timeout_ms": 8999}, "third"),
        ({"group_protocol": "consumer", "session_timeout_ms": 45000}, "group.protocol"),
        ({"group_protocol": "consumer", "heartbeat_interval_ms": 3000}, "group.protocol"),
        (
            {"group_protocol": "consumer", "partition_assignment_strategy": ["range"]},
            "group.protocol",
        ),
        ({"group_remote_assignor": "range"}, "group.protocol"),
        ({"group_id": ""}, "group.id"),
        ({"group_id": None, "enable_auto_commit": True}, "group.id"),
        ({"auto_offset_reset": "begining"}, "auto.offset.reset"),
        ({"isolation_level": "committed"}, "isolation_level"),
        ({"max_poll_records": 0}, "max_poll_records"),
        ({"auto_ofset_reset": "earliest"}, "auto_offset_reset"),
        ({"partition_assignment_strategy": []}, "partition.assignment.strategy"),
        ({"partition_assignment_strategy": ["fair"]}, "fair"),
    ],
)
@pytest.mark.parametrize("shell", [Consumer, AsyncConsumer])
def test_what_makes_no_sense_is_refused(shell: type, settings: dict[str, Any], what: str) -> None:
    with pytest.raises(SettingError) as caught:
        shell(**{"group_id": "g"} | settings)
    assert what in str(caught.value)


def test_one_heartbeat_in_three_may_be_as_long_as_it_gets() -> None:
    made = options(group_id="g", heartbeat_interval_ms=15000)
    assert made.values.integer("heartbeat.interval.ms") == 15000
