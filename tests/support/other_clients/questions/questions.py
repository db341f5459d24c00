"""Requests whose answers must be the same from Headwater and from Apache Kafka, field by field.

A script asks a broker one thing after another, in every version, and keeps the answers as plain
values, without what is bound to differ: ids that are made up, addresses, paths, sizes, and the
wording of error messages.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping
from typing import Any

from headwater.testing.broker_process import wait_until
from headwater.wire.api_keys import ApiKey
from headwater.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from headwater.wire.records import Record, encode_batch
from headwater.wire.schema import ZERO_UUID, Message, Struct
from tests.support.other_clients.raw import RawConnection

#: Where a setting comes from, in DescribeConfigs: it was never set.
DEFAULT_SOURCE = 5
NOW_MS = int(time.time() * 1000)
#: An id that no topic has.
STRANGER = uuid.UUID(int=0x1234)

#: Fields whose values are a broker's own business.
_OWN = frozenset(
    {
        "throttle_time_ms",
        "error_message",
        "cluster_id",
        "host",
        "port",
        "log_dir",
        "total_bytes",
        "usable_bytes",
        "producer_id",
        "topic_authorized_operations",
        "cluster_authorized_operations",
    }
)
#: Kafka gives a new cluster the first by itself. The others Kafka 4.3 does not have.
_OWN_SETTINGS = frozenset(
    {
        "min.insync.replicas",
        "records.validation",
        "max.decompressed.message.bytes",
        "errors.deadletterqueue.group.enable",
        "remote.copy.lag.bytes",
        "remote.copy.lag.ms",
        "delay.levels",
        "delay.max.ms",
        "delay.mode",
        "delay.ms",
        "delay.pending.max.bytes",
        "retry.attempts",
        "retry.breaker.letters",
        "retry.breaker.pause",
        "retry.breaker.window.ms",
        "retry.dead.letter.topic",
        "retry.delays",
        "retry.group",
        "retry.jitter",
    }
)
#: What an older answer says in the place of an error: no wording, but a word.
_NO_ERROR = "NONE"
#: Lists whose order means nothing, by what tells their elements apart.
_UNORDERED = ("name", "topic", "partition_index", "partition", "resource_name", "resource_type")


class Conversation:
    """Asks, and keeps the answers by what was asked."""

    def __init__(self, connection: RawConnection, versions: Mapping[ApiKey, range]) -> None:
        self.connection = connection
        self.versions = versions
        self.answers: dict[str, object] = {}

    def ask(
        self, label: str, make: Callable[[int], Message], versions: range | None = None
    ) -> None:
        """Ask in every version; `make` is given the version, for names that must be new."""
        api_key = ApiKey(make(0).API_KEY)
        for version in versions or self.versions[api_key]:
            answer = self.connection.ask(make(version), version)
            self.answers[f"{label} v{version}"] = plain(answer, version)

    def create(self, topic: str, partitions: int = 1, **settings: str) -> None:
        """A topic that is there before anything is asked; settings with underscores for dots."""
        configs = [
            CreatableTopicConfig(name=name.replace("_", "."), value=value)
            for name, value in settings.items()
        ]
        wanted = CreatableTopic(
            name=topic, num_partitions=partitions, replication_factor=1, configs=configs
        )
        answer = self.connection.ask(CreateTopicsRequest(topics=[wanted], timeout_ms=9_000), 7)
        assert answer.topics[0].error_code == 0, answer
        wait_until(lambda: self.connection.serves(topic, partitions), f"{topic} is served")

    def produce(self, topic: str, *timestamps_ms: int) -> None:
        """A batch of one record for each time."""
        for number, timestamp_ms in enumerate(timestamps_ms):
            batch = encode_batch([Record(0, timestamp_ms, b"key", b"%d" % number)])
            assert self.connection.produce(topic, batch).error_code == 0


def plain(value: object, version: int) -> object:
    """A message as dictionaries and lists, without what is the broker's own."""
    if isinstance(value, Struct):
        return {
            field.name: _masked(field.name, getattr(value, field.name), version)
            for field in value.FIELDS
            if field.exists_in(version)
            and (field.name not in _OWN or getattr(value, field.name) == _NO_ERROR)
        }
    if isinstance(value, list):
        items: list[Any] = [plain(each, version) for each in value if not _is_own(each)]
        return sorted(items, key=_order) if _is_unordered(items) else items
    if isinstance(value, memoryview | bytearray):
        return bytes(value)
    return value


def _is_own(value: object) -> bool:
    name, source = getattr(value, "name", None), getattr(value, "source", None)
    # The settings that a default comes from Kafka names only if their unit is the same.
    return name in _OWN_SETTINGS or source == DEFAULT_SOURCE


def _masked(name: str, value: object, version: int) -> object:
    if isinstance(value, uuid.UUID):
        return "none" if value == ZERO_UUID else "an id"
    # One that is open on the session and one that is not.
    if name == "session_id":
        return "none" if value == 0 else "an id"
    return plain(value, version)


def _is_unordered(items: list[Any]) -> bool:
    return bool(items) and isinstance(items[0], dict) and any(n in items[0] for n in _UNORDERED)


def _order(item: dict[str, Any]) -> str:
    return repr([item.get(name) for name in _UNORDERED])


def common_versions(first: RawConnection, second: RawConnection) -> dict[ApiKey, range]:
    """What both brokers offer of each API."""
    found = {}
    for api_key in ApiKey:
        ranges = [each.versions(api_key) for each in (first, second)]
        if all(ranges):
            lowest = max(each.start for each in ranges)
            highest = min(each.stop for each in ranges)
            found[api_key] = range(lowest, highest)
    return found
