"""What a consumer was made with: its settings, checked, and the objects that its user gave."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from headwater.base.settings import SettingValues
from headwater.client.assignors.assignor import Assignor
from headwater.client.assignors.known_assignors import make_assignors
from headwater.client.consumer.deserializers import DeserializerLike, Deserializers
from headwater.client.consumer.interceptors import Interceptors
from headwater.client.consumer.positions.reset import OffsetReset, parse_offset_reset
from headwater.client.environment import ClientEnvironment
from headwater.client.fetch.conversation import FetchLimits
from headwater.client.fetch.isolation import IsolationLevel
from headwater.client.settings.client_config import given_config, parse_settings
from headwater.client.settings.consumer_settings import CONSUMER_SETTINGS, check_consumer_settings

_ASSIGNORS: Final = "partition.assignment.strategy"
_ASSIGNORS_KEYWORD: Final = "partition_assignment_strategy"

_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True)
class ConsumerOptions:
    values: SettingValues
    deserializers: Deserializers
    interceptors: Interceptors
    assignors: list[Assignor]
    offset_reset: OffsetReset
    isolation_level: IsolationLevel
    limits: FetchLimits
    environment: ClientEnvironment
    #: Whether user code runs on another thread than the consumer's loop.
    is_threaded: bool

    def seconds(self, name: str) -> float:
        """A setting in milliseconds."""
        return self.values.integer(name) / 1000

    @property
    def group_id(self) -> str | None:
        return self.values.optional_text("group.id")

    @property
    def auto_commit_interval_s(self) -> float | None:
        """None if nothing is committed automatically."""
        if self.group_id is None or not self.values.boolean("enable.auto.commit"):
            return None
        return self.seconds("auto.commit.interval.ms")


def make_options(
    config: Mapping[str, object] | None,
    keywords: Mapping[str, object],
    *,
    key_deserializer: DeserializerLike | None,
    value_deserializer: DeserializerLike | None,
    interceptors: Iterable[object],
    environment: ClientEnvironment,
    is_threaded: bool = False,
) -> ConsumerOptions:
    """Check everything that can be; raises `SettingError`."""
    config, keywords = dict(given_config(config)), dict(keywords)
    # Assignors may be objects, which no setting can hold; their names stand for them there.
    entries = keywords.get(_ASSIGNORS_KEYWORD, config.get(_ASSIGNORS))
    assignors: list[Assignor] | None = None
    if entries is not None and not isinstance(entries, str):
        listed = entries if isinstance(entries, Iterable) else [entries]
        assignors = make_assignors(listed)
        keywords.pop(_ASSIGNORS_KEYWORD, None)
        config[_ASSIGNORS] = [assignor.name for assignor in assignors]
    values = parse_settings(CONSUMER_SETTINGS, config, keywords)
    check_consumer_settings(values)
    values = _with_client_id(values)
    is_committed_only = values.text("isolation.level") == "read_committed"
    return ConsumerOptions(
        values=values,
        deserializers=Deserializers(key_deserializer, value_deserializer),
        interceptors=Interceptors(interceptors),
        assignors=assignors or make_assignors(values.texts(_ASSIGNORS)),
        offset_reset=parse_offset_reset(values.text("auto.offset.reset")),
        isolation_level=(
            IsolationLevel.READ_COMMITTED if is_committed_only else IsolationLevel.READ_UNCOMMITTED
        ),
        limits=FetchLimits(
            min_bytes=values.integer("fetch.min.bytes"),
            max_wait_ms=values.integer("fetch.max.wait.ms"),
            max_bytes=values.integer("fetch.max.bytes"),
            max_partition_bytes=values.integer("max.partition.fetch.bytes"),
        ),
        environment=environment,
        is_threaded=is_threaded,
    )


def _with_client_id(values: SettingValues) -> SettingValues:
    """As in Kafka, who gives no client id gets one that tells consumers of a process apart."""
    if values.is_set("client.id"):
        return values
    group_id = values.optional_text("group.id")
    name = f"consumer-{group_id}-{next(_numbers)}" if group_id else f"consumer-{next(_numbers)}"
    return values.with_overrides({"client.id": name})
