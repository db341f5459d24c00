"""The options of writing: those of Spark's own Kafka connector, and those of exactly once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from headwater.base.errors import InvalidTopicError
from headwater.base.ids import validate_topic_name
from headwater.client.settings.admin_settings import ADMIN_SETTINGS
from headwater.client.settings.client_config import parse_settings
from headwater.client.settings.producer_settings import PRODUCER_SETTINGS, check_producer_settings
from headwater.pipeline.connector.option_table import (
    AUDIT_STAGE_OPTION,
    BOOTSTRAP_OPTION,
    Direction,
    Mode,
    Option,
    OptionError,
    OptionTable,
    boolean_option,
    choice_option,
    client_settings,
    stage_name,
)

_BYTES: Final = "keys and values are written as they are; make bytes or text of them before."
_OWN_TRANSACTIONS: Final = "the sink makes its own transactions; use 'headwater.exactlyOnce'."
_OF_SPARK: Final = "It is for Spark, which hands its own options to the sink as well."
_TOLERANCE: Final = "errors.tolerance"
_LETTER_TOPIC: Final = "errors.deadletterqueue.topic.name"
_WRITE, _BATCH, _STREAM = Direction.WRITE, Mode.BATCH, Mode.STREAM

# fmt: off
SINK_OPTIONS: Final = OptionTable("writing", [
    Option(BOOTSTRAP_OPTION, "The brokers to make the first contact with: host:port, with commas "
           "between several. Needed.", direction=_WRITE),
    Option("topic", "The topic that all rows go to, whatever a column `topic` says. Needed if "
           "there is no such column.", "the column topic", direction=_WRITE),
    Option("includeHeaders", "In Spark's own connector, whether headers are in a row.",
           direction=_WRITE,
           without_effect="A column `headers` is written if there is one."),
    Option("headwater.exactlyOnce", "Whether each row is written once for readers of committed "
           "records, whatever crashes and is tried again.", "false", direction=_WRITE),
    Option("headwater.writeId", "A name for this write, such as that of the job and its day: with "
           "exactly once, a write whose name was used before is recognised as done and writes "
           "nothing. A stream needs none: its checkpoint names it.",
           "a new one for each write", direction=_WRITE, mode=_BATCH),
    Option(AUDIT_STAGE_OPTION, "Count what is written under this name, for `headwater audit "
           "topic`: each batch of a query once, whatever is tried again.", "not counted",
           direction=_WRITE),
    Option(_TOLERANCE, "What becomes of a row that cannot be written, by its topic, its "
           "partition, its headers or its size: `none` has it fail the query, `all` has it go to "
           "the dead-letter topic. The name is Kafka Connect's.", "none", direction=_WRITE),
    Option(_LETTER_TOPIC, "The topic that gets rows that cannot be written, "
           "with `errors.tolerance=all`.", direction=_WRITE),
    Option("errors.deadletterqueue.context.headers.enable", "In Kafka Connect, whether a dead "
           "letter has headers that tell why it is one.", direction=_WRITE,
           without_effect="It always has."),
    Option("checkpointLocation", "Where Spark keeps what a streaming query has done.",
           direction=_WRITE, mode=_STREAM, without_effect=_OF_SPARK),
    Option("queryName", "The name of a streaming query.", direction=_WRITE, mode=_STREAM,
           without_effect=_OF_SPARK),
    Option("kafka.acks", "How many replicas must have a batch before the broker answers: all that "
           "are in sync, 1 or 0. Exactly once needs all.", "all", direction=_WRITE),
    Option("kafka.compression.type", "How batches are compressed: none, gzip, snappy, lz4 or zstd.",
           "none", direction=_WRITE),
    Option("kafka.linger.ms", "How long a batch that is not full waits for more records.", "5",
           direction=_WRITE),
    Option("kafka.key.serializer", "", direction=_WRITE, refused=_BYTES),
    Option("kafka.value.serializer", "", direction=_WRITE, refused=_BYTES),
    Option("kafka.interceptor.classes", "", direction=_WRITE,
           refused="nothing may change records on their way."),
    Option("kafka.partitioner.class", "", direction=_WRITE, refused="give the rows a column "
           "`partition`, or a key whose hash decides."),
    Option("kafka.buffer.full.policy", "", direction=_WRITE,
           refused="a sink may not drop records; it waits for memory."),
    Option("kafka.transactional.id", "", direction=_WRITE, refused=_OWN_TRANSACTIONS),
    Option("kafka.transaction.two.phase.commit.enable", "", direction=_WRITE,
           refused=_OWN_TRANSACTIONS),
], elsewhere={
    "subscribe": "it is for reading; to write to a topic, use 'topic'.",
    "topics": "use 'topic', or a column `topic` for several.",
    "path": "there are no files here; use 'topic'.",
    "startingOffsets": "it is for reading.",
    "headwater.group": "it is for reading.",
})
# fmt: on

_CLIENT_DEFAULTS: Final = {"client.id": "headwater-spark"}


class Tolerance(NamedTuple):
    """Where rows go that cannot be written."""

    topic: str
    #: How large a row may be. The producer itself takes larger ones, which letters are.
    row_bytes_max: int


@dataclass(frozen=True, slots=True)
class SinkSettings:
    """What the options of a write amount to: checked on the driver, carried to every task."""

    #: Of the producer; those that an admin has too are given to that one as well.
    client: Mapping[str, str]
    #: None leaves it to the column.
    topic: str | None
    is_exactly_once: bool
    #: Empty for a new one.
    write_id: str
    #: None has a row that fails fail the task.
    tolerance: Tolerance | None = None
    #: Empty to count nothing.
    audit_stage: str = ""

    def admin_settings(self) -> dict[str, str]:
        return {name: value for name, value in self.client.items() if name in ADMIN_SETTINGS}


def parse_sink_settings(options: Mapping[str, str], mode: Mode) -> SinkSettings:
    """The settings of a batch or stream write; raises `OptionError` and `SettingError`."""
    SINK_OPTIONS.check(options, mode)
    values = {name.lower(): value for name, value in options.items()}
    is_exactly_once = boolean_option(
        "headwater.exactlyOnce", values.get("headwater.exactlyonce", "false")
    )
    client = _CLIENT_DEFAULTS | client_settings(options)
    if not client["bootstrap.servers"].strip():
        raise OptionError(f"The option '{BOOTSTRAP_OPTION}' cannot be empty.")
    # Checked here, on the driver, and not in the first task. With any transactional id the settings
    # are refused that do not go together with transactions.
    identity = {"transactional.id": "any"} if is_exactly_once else {}
    producer = parse_settings(PRODUCER_SETTINGS, client | identity, {})
    check_producer_settings(producer)
    topic = values.get("topic")
    if topic is not None:
        _check_topic("topic", topic)
    letter_topic = _letter_topic(values, topic)
    tolerance = None
    if letter_topic:
        size_max, memory = producer.integer("max.request.size"), producer.integer("buffer.memory")
        tolerance = Tolerance(letter_topic, size_max)
        client["max.request.size"] = str(max(size_max, memory))
    write_id = values.get("headwater.writeid", "")
    if write_id and not is_exactly_once:
        raise OptionError(
            "The option 'headwater.writeId' needs 'headwater.exactlyOnce=true': without it a "
            "write that is repeated cannot be recognised."
        )
    return SinkSettings(client, topic, is_exactly_once, write_id, tolerance, stage_name(options))


def _letter_topic(values: Mapping[str, str], topic: str | None) -> str:
    """Where rows go that cannot be written; empty for nowhere."""
    tolerance = choice_option(_TOLERANCE, values.get(_TOLERANCE, "none"), ("none", "all"))
    name = values.get(_LETTER_TOPIC, "")
    if tolerance == "none":
        if name:
            raise OptionError(
                f"The option '{_LETTER_TOPIC}' needs '{_TOLERANCE}=all': without it a row that "
                "cannot be written fails the query."
            )
        return ""
    if not name:
        raise OptionError(
            f"The option '{_TOLERANCE}=all' needs '{_LETTER_TOPIC}': a sink may not drop rows."
        )
    _check_topic(_LETTER_TOPIC, name)
    if name == topic:
        raise OptionError(
            f"The option '{_LETTER_TOPIC}' cannot be {name!r}, which the rows themselves go to."
        )
    return name


def _check_topic(option: str, name: str) -> None:
    try:
        validate_topic_name(name)
    except InvalidTopicError as error:
        raise OptionError(f"The option '{option}' cannot be {name!r}: {error}") from None
