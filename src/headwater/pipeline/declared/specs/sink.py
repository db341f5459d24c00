"""A sink of a pipeline: where the rows of a step go, and in which form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

SinkKind: TypeAlias = Literal["topic", "lake", "archive", "screen", "delta", "iceberg"]
SinkFormat: TypeAlias = Literal["json", "csv", "avro", "raw"]
OutputMode: TypeAlias = Literal["append", "update", "complete"]


@dataclass(frozen=True, slots=True)
class SinkSpec:
    """Exactly one of `topic`, `topic_column`, `lake`, `archive`, `screen`, `delta` and `iceberg`
    is given.
    """

    name: str
    #: The name of the step or source whose rows are written.
    input: str
    topic: str = ""
    #: A column that names each row's topic.
    topic_column: str = ""
    #: The path of a lake table.
    lake: str = ""
    #: The path of a lake table that is an archive of topics; the input is a raw source then.
    archive: str = ""
    screen: bool = False
    #: The path of a Delta table.
    delta: str = ""
    #: The name of an Iceberg table.
    iceberg: str = ""
    #: Of a topic: the column that becomes the key; empty for none.
    key: str = ""
    #: Of a topic: the column that is the value; empty for all columns but those of `headers` and
    #: `topic_column`, encoded together by `format`. With `raw` it is the column `value`, and the
    #: columns key, headers, topic, partition and timestamp are taken too where the rows have them.
    value: str = ""
    format: SinkFormat = "json"
    #: An Avro schema as JSON text; empty for the one that follows from the columns.
    avro_schema: str = ""
    #: Of a topic: columns by the name of the header that they become.
    headers: Mapping[str, str] = field(default_factory=dict)
    exactly_once: bool = False
    mode: OutputMode = "append"
    #: Of lake, Delta and Iceberg tables: the columns of the key by which rows are replaced.
    upsert: tuple[str, ...] = ()
    #: The column that says which of several rows of one key in a batch is the newest.
    latest_by: str = ""
    partition_by: tuple[str, ...] = ()
    #: Of a screen: how many rows of a batch are shown.
    rows: int = 20
    #: How often a batch is made; 0 for as soon as the one before is done.
    trigger_ms: int = 0
    #: Options of the sink's writer, as they are.
    options: Mapping[str, str] = field(default_factory=dict)
    line: int = 0

    @property
    def kind(self) -> SinkKind:
        if self.topic or self.topic_column:
            return "topic"
        if self.lake:
            return "lake"
        if self.archive:
            return "archive"
        if self.delta:
            return "delta"
        return "iceberg" if self.iceberg else "screen"
