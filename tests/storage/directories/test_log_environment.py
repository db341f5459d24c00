import random

import pytest

from headwater.base.settings import SettingError
from headwater.sim.disk.faulty_disk import FaultyDisk
from headwater.storage.directories.log_environment import LogEnvironment
from headwater.storage.log_config import LogConfig
from headwater.storage.log_settings import LOG_SETTINGS


def environment_of(
    settings: dict[str, str], topics: dict[str, dict[str, str]] | None = None
) -> LogEnvironment:
    known = topics or {}
    return LogEnvironment.from_settings(
        LOG_SETTINGS.parse(settings),
        FaultyDisk(),
        random.Random(0),
        lambda topic: known.get(topic, {}),
    )


def test_defaults() -> None:
    environment = environment_of({})
    assert environment.handles.capacity == 512
    assert environment.producer_id_expiration_ms == 86_400_000
    assert environment.close_thread_count == 2
    assert environment.config_of("any") == LogConfig()


def test_settings_have_an_effect() -> None:
    environment = environment_of(
        {
            "log.handles.max": "17",
            "producer.id.expiration.ms": "5",
            "num.recovery.threads.per.data.dir": "3",
            "log.retention.hours": "1",
        }
    )
    assert environment.handles.capacity == 17
    assert environment.producer_id_expiration_ms == 5
    assert environment.close_thread_count == 3
    assert environment.config_of("any").retention_ms == 3_600_000


def test_topics_share_a_config_unless_they_have_settings_of_their_own() -> None:
    topics = {"short": {"retention.ms": "7"}, "bad": {"retention.ms": "soon"}}
    environment = environment_of({"message.max.bytes": "99"}, topics)
    assert environment.config_of("a") is environment.config_of("b")
    short = environment.config_of("short")
    assert (short.retention_ms, short.max_message_bytes) == (7, 99)
    with pytest.raises(SettingError, match="in the topic bad"):
        environment.config_of("bad")


def test_ids_come_from_the_given_randomness() -> None:
    first, second = environment_of({}), environment_of({})
    ids = [first.new_id() for _ in range(3)]
    assert len(set(ids)) == 3 and all(each.version == 4 for each in ids)
    assert [second.new_id() for _ in range(3)] == ids
