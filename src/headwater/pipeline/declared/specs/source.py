"""A source of a pipeline: topics, or a lake table, and how their records become columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

SourceFormat: TypeAlias = Literal["json", "csv", "avro", "raw"]
BadRecords: TypeAlias = Literal["fail", "skip", "dead_letter"]

#: What `metadata` may name. In a decoded source, `offset` becomes the column `_offset` and so on:
#: `_key` STRING, `_topic` STRING, `_partition` INT, `_offset` BIGINT, `_timestamp` TIMESTAMP,
#: `_headers` ARRAY<STRUCT<key: STRING, value: BINARY>>.
METADATA = ("key", "topic", "partition", "offset", "timestamp", "headers")


@dataclass(frozen=True, slots=True)
class Watermark:
    """How late an event may come by the time in `column` before it is left out."""

    column: str
    delay_ms: int

    @property
    def delay(self) -> str:
        """As Spark's `withWatermark` takes it."""
        return f"{self.delay_ms} milliseconds"


@dataclass(frozen=True, slots=True)
class SourceSpec:
    """Exactly one of `topics`, `pattern` and `lake` is given.

    Records of topics are decoded by `format`. `raw` gives the columns of Spark's Kafka connector:
    key, value, topic, partition, offset, timestamp, timestampType (and headers if `metadata` has
    them). The others give the columns of the schema, then those that `metadata` names.

    What cannot be decoded becomes a dead letter with the reason (`dead_letter` names the topic, or
    `bad_records` is "dead_letter"), fails the run (it is "fail") or is left out ("skip").
    """

    name: str
    topics: tuple[str, ...] = ()
    pattern: str = ""
    #: The path of a lake table.
    lake: str = ""
    #: Topics that are not streamed are read once, from the start of a run; lake tables likewise.
    streaming: bool = True
    format: SourceFormat = "json"
    #: Spark's DDL; empty for raw, lake tables, and Avro by `avro_schema`.
    schema: str = ""
    #: An Avro schema, as JSON text.
    avro_schema: str = ""
    #: Avro records have a zero and four bytes of a schema's number before them.
    confluent_header: bool = False
    #: For Spark's from_json and from_csv: `sep`, `timestampFormat` and so on.
    format_options: Mapping[str, str] = field(default_factory=dict)
    metadata: tuple[str, ...] = ()
    watermark: Watermark | None = None
    #: The topic for dead letters; empty for the one that is named after the group.
    dead_letter: str = ""
    bad_records: BadRecords = "fail"
    #: "earliest", "latest", "group", or JSON as the connector's `startingOffsets` takes it.
    starting_offsets: str = "earliest"
    #: Set where the file gave a time to start from; it goes before `starting_offsets`.
    starting_timestamp_ms: int | None = None
    max_records_per_batch: int | None = None
    #: The consumer group that the progress is shown as; empty for `<pipeline>`.
    group: str = ""
    #: Options of the connector, as they are.
    options: Mapping[str, str] = field(default_factory=dict)
    #: The line of the file, to name in errors.
    line: int = 0

    @property
    def has_dead_letters(self) -> bool:
        return bool(self.dead_letter) or self.bad_records == "dead_letter"

    @property
    def is_lake(self) -> bool:
        return bool(self.lake)
