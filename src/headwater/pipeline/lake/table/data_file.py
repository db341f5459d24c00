"""A Parquet file as a manifest names it: where it lies, how much is in it, which records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headwater.base.ids import TopicPartition


@dataclass(frozen=True, slots=True)
class RecordSpan:
    """The records of one topic partition that a file holds; both offsets are in it.

    There may be offsets between them that are not: those of transaction markers, of what a topic
    compacted away, and of records whose timestamp has another date.
    """

    topic: str
    partition: int
    first_offset: int
    last_offset: int

    @property
    def topic_partition(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)

    def to_json(self) -> dict[str, Any]:
        return {
            "topic": self.topic,
            "partition": self.partition,
            "first_offset": self.first_offset,
            "last_offset": self.last_offset,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> RecordSpan:
        return cls(
            str(value["topic"]),
            int(value["partition"]),
            int(value["first_offset"]),
            int(value["last_offset"]),
        )


@dataclass(frozen=True, slots=True)
class DataFile:
    """A file never changes once a manifest names it."""

    #: Below the table's directory, with slashes.
    path: str
    size_bytes: int
    row_count: int
    #: The values of the columns that the table is partitioned by, as text; None is null.
    partition: tuple[str | None, ...] = ()
    #: Only for files with records of topics.
    records: RecordSpan | None = None

    @property
    def directory(self) -> str:
        return self.path.rpartition("/")[0]

    def to_json(self) -> dict[str, Any]:
        value: dict[str, Any] = {
            "path": self.path,
            "size_bytes": self.size_bytes,
            "row_count": self.row_count,
        }
        if self.partition:
            value["partition"] = list(self.partition)
        if self.records is not None:
            value["records"] = self.records.to_json()
        return value

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> DataFile:
        records = value.get("records")
        return cls(
            str(value["path"]),
            int(value["size_bytes"]),
            int(value["row_count"]),
            tuple(None if each is None else str(each) for each in value.get("partition", ())),
            None if records is None else RecordSpan.from_json(records),
        )
