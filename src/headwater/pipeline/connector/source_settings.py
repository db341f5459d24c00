"""What the options of a read amount to: checked once on the driver, then carried to every task."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from headwater.base.errors import InvalidTopicError
from headwater.base.ids import TopicPartition, validate_topic_name
from headwater.client.settings.admin_settings import ADMIN_SETTINGS
from headwater.client.settings.client_config import parse_settings
from headwater.client.settings.consumer_settings import CONSUMER_SETTINGS
from headwater.pipeline.connector.option_table import (
    BOOTSTRAP_OPTION,
    Mode,
    OptionError,
    boolean_option,
    choice_option,
    client_settings,
    duration_option_ms,
    integer_option,
    stage_name,
)
from headwater.pipeline.connector.positions import (
    Place,
    Position,
    ending_position,
    parse_assignment,
    starting_position,
)
from headwater.pipeline.connector.source_options import SOURCE_OPTIONS

_CHOICES: Final = ("subscribe", "subscribePattern", "assign")
_STRATEGIES: Final = ("error", "latest")
#: What the source has for settings of the client that nobody gave.
_CLIENT_DEFAULTS: Final = {
    "isolation.level": "read_committed",
    "max.partition.fetch.bytes": str(8 << 20),
    "client.id": "headwater-spark",
}
#: Accepted because Spark's connector does, but there is no consumer group here.
_IGNORED_SETTINGS: Final = ("group.id",)


@dataclass(frozen=True, slots=True)
class TopicChoice:
    """Which partitions are read: exactly one of the three is not None."""

    topics: tuple[str, ...] | None = None
    pattern: str | None = None
    partitions: tuple[TopicPartition, ...] | None = None

    def matches(self, topic: str) -> bool:
        """Whether a topic's name is one that the pattern means."""
        return self.pattern is not None and re.fullmatch(self.pattern, topic) is not None


@dataclass(frozen=True, slots=True)
class SourceSettings:
    #: Of the consumer; those that an admin has too are given to that one as well.
    client: Mapping[str, str]
    choice: TopicChoice
    start: Position
    end: Position
    is_missing_time_latest: bool
    offsets_max: int | None
    offsets_min: int | None
    trigger_delay_ms: int
    task_count_min: int | None
    task_offsets_max: int | None
    fails_on_data_loss: bool
    poll_timeout_ms: int
    lookup_retries: int
    lookup_interval_ms: int
    group: str
    #: Empty to count nothing.
    audit_stage: str = ""

    @property
    def bootstrap_servers(self) -> str:
        return self.client["bootstrap.servers"]

    @property
    def is_committed_only(self) -> bool:
        return self.client["isolation.level"].strip().lower() == "read_committed"

    def admin_settings(self) -> dict[str, str]:
        return {name: value for name, value in self.client.items() if name in ADMIN_SETTINGS}


def parse_source_settings(options: Mapping[str, str], mode: Mode) -> SourceSettings:
    """The settings of a batch or a stream query; raises `OptionError` and `SettingError`."""
    SOURCE_OPTIONS.check(options, mode)
    reader = _Options(options)
    start = starting_position(options, is_stream=mode is Mode.STREAM)
    group = reader.text("headwater.group", "").strip()
    if start is Place.GROUP and not group:
        raise OptionError(
            "The option 'startingOffsets' cannot be 'group' without 'headwater.group', which names "
            "the group to go on from."
        )
    offsets_max = reader.optional_integer("maxOffsetsPerTrigger")
    offsets_min = reader.optional_integer("minOffsetsPerTrigger")
    if offsets_max is not None and offsets_min is not None and offsets_min > offsets_max:
        raise OptionError(
            f"The option 'minOffsetsPerTrigger' cannot be {offsets_min}, which is more than "
            f"'maxOffsetsPerTrigger', {offsets_max}."
        )
    return SourceSettings(
        client=_client(options),
        choice=_choice(reader),
        start=start,
        end=ending_position(options),
        is_missing_time_latest=reader.choice("startingOffsetsByTimestampStrategy", _STRATEGIES)
        == "latest",
        offsets_max=offsets_max,
        offsets_min=offsets_min,
        trigger_delay_ms=duration_option_ms(
            "maxTriggerDelay", reader.text("maxTriggerDelay", "15m")
        ),
        task_count_min=reader.optional_integer("minPartitions"),
        task_offsets_max=reader.optional_integer("maxRecordsPerPartition"),
        fails_on_data_loss=reader.boolean("failOnDataLoss", "true"),
        poll_timeout_ms=reader.integer("kafkaConsumer.pollTimeoutMs", 120_000),
        lookup_retries=reader.integer("fetchOffset.numRetries", 3, lower=0),
        lookup_interval_ms=reader.integer("fetchOffset.retryIntervalMs", 10, lower=0),
        group=group,
        audit_stage=stage_name(options),
    )


class _Options:
    """Options by name, whatever the case."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._values = {name.lower(): value for name, value in options.items()}

    def __contains__(self, name: str) -> bool:
        return name.lower() in self._values

    def text(self, name: str, default: str) -> str:
        return self._values.get(name.lower(), default)

    def choice(self, name: str, choices: tuple[str, ...]) -> str:
        return choice_option(name, self.text(name, choices[0]), choices)

    def boolean(self, name: str, default: str) -> bool:
        return boolean_option(name, self.text(name, default))

    def integer(self, name: str, default: int, lower: int = 1) -> int:
        return integer_option(name, self.text(name, str(default)), lower)

    def optional_integer(self, name: str) -> int | None:
        return self.integer(name, 1) if name in self else None


def wants_headers(options: Mapping[str, str]) -> bool:
    return _Options(options).boolean("includeHeaders", "false")


def chosen_columns(options: Mapping[str, str]) -> list[str] | None:
    """The names of `headwater.columns`; None if it is not given."""
    reader = _Options(options)
    if "headwater.columns" not in reader:
        return None
    return [name.strip() for name in reader.text("headwater.columns", "").split(",")]


def _client(options: Mapping[str, str]) -> dict[str, str]:
    given = client_settings(options)
    for name in _IGNORED_SETTINGS:
        given.pop(name, None)
    client = _CLIENT_DEFAULTS | given
    # Checked here, on the driver, and not in the first task.
    parse_settings(CONSUMER_SETTINGS, client, {})
    if not client["bootstrap.servers"].strip():
        raise OptionError(f"The option '{BOOTSTRAP_OPTION}' cannot be empty.")
    return client


def _choice(options: _Options) -> TopicChoice:
    given = [name for name in _CHOICES if name in options]
    if len(given) != 1:
        problem = "none is given" if not given else f"{' and '.join(given)} are given"
        raise OptionError(
            "Exactly one of the options 'subscribe', 'subscribePattern' and 'assign' says what to "
            f"read, but {problem}."
        )
    text = options.text(given[0], "")
    if given[0] == "assign":
        return TopicChoice(partitions=tuple(parse_assignment(text)))
    if given[0] == "subscribe":
        return TopicChoice(topics=_topics(text))
    pattern = text.strip()
    try:
        re.compile(pattern)
    except re.error as error:
        raise OptionError(
            f"The option 'subscribePattern' cannot be {text!r}: it is not a regular expression "
            f"({error})."
        ) from None
    if not pattern:
        raise OptionError("The option 'subscribePattern' cannot be empty.")
    return TopicChoice(pattern=pattern)


def _topics(text: str) -> tuple[str, ...]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise OptionError("The option 'subscribe' cannot be empty: it names topics.")
    for name in names:
        try:
            validate_topic_name(name)
        except InvalidTopicError as error:
            raise OptionError(f"The option 'subscribe' cannot be {text!r}: {error}") from None
    return tuple(sorted(set(names)))
