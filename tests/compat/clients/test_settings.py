"""Settings of topics and of the broker are described and changed by every client that can."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from headwater.testing.broker_process import wait_until
from tests.support.other_clients.contract import AdminClient, ClientError, Message, Sending

MakeTopic = Callable[..., str]

TOPIC_DEFAULTS = {
    "cleanup.policy": "delete",
    "compression.type": "producer",
    "delete.retention.ms": "86400000",
    "file.delete.delay.ms": "60000",
    "flush.messages": "9223372036854775807",
    "flush.ms": "9223372036854775807",
    "index.interval.bytes": "4096",
    "max.compaction.lag.ms": "9223372036854775807",
    "max.message.bytes": "1048588",
    "message.timestamp.type": "CreateTime",
    "min.cleanable.dirty.ratio": "0.5",
    "min.compaction.lag.ms": "0",
    "min.insync.replicas": "1",
    "preallocate": "false",
    "retention.bytes": "-1",
    "retention.ms": "604800000",
    "segment.bytes": "1073741824",
    "segment.index.bytes": "10485760",
    "segment.jitter.ms": "0",
    "segment.ms": "604800000",
    "unclean.leader.election.enable": "false",
}
BROKER_DEFAULTS = {
    "auto.create.topics.enable": "true",
    "log.retention.hours": "168",
    "log.segment.bytes": "1073741824",
    "message.max.bytes": "1048588",
    "num.partitions": "1",
    "socket.request.max.bytes": "104857600",
}


def test_a_new_topic_has_kafkas_defaults(admin: AdminClient, make_topic: MakeTopic) -> None:
    described = admin.topic_settings(make_topic())
    found = {name: described[name].value for name in TOPIC_DEFAULTS}
    assert found == TOPIC_DEFAULTS
    # Apache Kafka makes a cluster-wide setting of one of them for itself.
    assert all(described[name].is_default for name in TOPIC_DEFAULTS if "insync" not in name)
    assert not any(described[name].is_read_only for name in TOPIC_DEFAULTS)


def test_settings_given_at_creation(admin: AdminClient, make_topic: MakeTopic) -> None:
    described = admin.topic_settings(make_topic(retention_ms=1234567, cleanup_policy="compact"))
    assert described["retention.ms"][:2] == ("1234567", False)
    assert described["cleanup.policy"][:2] == ("compact", False)
    assert described["segment.bytes"][:2] == ("1073741824", True)


def test_a_change_takes_effect(admin: AdminClient, make_topic: MakeTopic) -> None:
    topic = make_topic()
    large = [Message(b"x" * 5_000)]
    admin.produce(topic, large)
    admin.alter_topic(topic, {"max.message.bytes": "1000"})
    wait_until(
        lambda: admin.topic_settings(topic)["max.message.bytes"][:2] == ("1000", False),
        "the change is described",
    )
    with pytest.raises(ClientError) as refusal:
        admin.produce(topic, large)
    assert refusal.value.name == "MESSAGE_TOO_LARGE"
    assert admin.end_offsets(topic) == (0, 1)


@pytest.mark.parametrize(
    "settings",
    [
        {"retention.ms": "-2"},
        {"cleanup.policy": "shred"},
        {"no.such.setting": "1"},
        {"min.cleanable.dirty.ratio": "1.5"},
        {"segment.bytes": "13"},
    ],
    ids=str,
)
def test_changes_that_are_refused(
    settings: dict[str, str], admin: AdminClient, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    before = admin.topic_settings(topic)
    with pytest.raises(ClientError) as refusal:
        admin.alter_topic(topic, settings)
    assert refusal.value.name == "INVALID_CONFIG"
    assert admin.topic_settings(topic) == before


def test_the_brokers_settings(admin: AdminClient) -> None:
    [broker_id] = admin.broker_ids()
    described = admin.broker_settings(broker_id)
    assert {name: described[name].value for name in BROKER_DEFAULTS} == BROKER_DEFAULTS
    assert described["auto.create.topics.enable"].is_read_only
    assert not described["message.max.bytes"].is_read_only


def test_a_change_at_the_broker_reaches_its_topics(
    admin: AdminClient, make_topic: MakeTopic
) -> None:
    """A topic that does not say otherwise follows the broker at once, without a restart."""
    topic = make_topic()
    own = make_topic(max_message_bytes=900_000)
    [broker_id] = admin.broker_ids()
    large = [Message(b"x" * 500_000)]
    admin.alter_broker(broker_id, {"message.max.bytes": "200000"})
    try:
        wait_until(
            lambda: admin.topic_settings(topic)["max.message.bytes"][:2] == ("200000", False),
            "the topic follows",
        )
        with pytest.raises(ClientError) as refusal:
            admin.produce(topic, large, Sending())
        assert refusal.value.name == "MESSAGE_TOO_LARGE"
        assert admin.topic_settings(own)["max.message.bytes"].value == "900000"
        admin.produce(own, large)
    finally:
        admin.reset_broker(broker_id, ["message.max.bytes"])
    wait_until(
        lambda: admin.topic_settings(topic)["max.message.bytes"][:2] == ("1048588", True),
        "the topic follows back",
    )
    admin.produce(topic, large)


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"broker.id": "7"}, "INVALID_REQUEST"),
        ({"log.dirs": "/tmp/elsewhere"}, "INVALID_REQUEST"),
        ({"message.max.bytes": "many"}, "INVALID_REQUEST"),
        ({"message.max.bytes": "-1"}, "INVALID_REQUEST"),
    ],
    ids=str,
)
def test_what_a_broker_refuses_to_change(
    settings: dict[str, str], error: str, admin: AdminClient
) -> None:
    [broker_id] = admin.broker_ids()
    with pytest.raises(ClientError) as refusal:
        admin.alter_broker(broker_id, settings)
    assert refusal.value.name == error
