"""What Spark does with a stream reader, done here: micro-batches, a checkpoint, crashes.

Offsets go through their JSON, readers and partitions through pickle, as they do between Spark's
processes. So a test drives the source through thousands of batches in the time of one of Spark's.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql.streaming.datasource import ReadAllAvailable

from headwater.pipeline.connector.record_schema import source_schema
from headwater.pipeline.connector.stream_reader import HeadwaterStreamReader
from tests.support.spark.source_reading import Place


@dataclass
class FakeQuery:
    """A query with its checkpoint; `restart` goes on from there with a new reader."""

    options: dict[str, str]
    #: The end of each batch, and which of them are done.
    offsets: list[str] = field(default_factory=list)
    commit_count: int = 0
    batches: list[list[Place]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.restart()

    @property
    def places(self) -> list[Place]:
        return sorted(place for batch in self.batches for place in batch)

    def restart(self) -> None:
        self.reader = HeadwaterStreamReader(self.options, source_schema(self.options))
        self._start: str | None = None

    def stop(self) -> None:
        self.reader.stop()

    def run_available(self) -> None:
        """As with the trigger AvailableNow, by a reader of its own."""
        self.stop()
        self.restart()
        self.reader.prepareForTriggerAvailableNow()
        while self.run_batch():
            pass

    def run_batch(self, *, crashes: bool = False) -> bool:
        """Do one micro-batch if there is something to do; a crash comes before it is committed."""
        if len(self.offsets) == self.commit_count and not self._plan():
            return False
        number = self.commit_count
        start = self.offsets[number - 1] if number else self._initial()
        rows = self._read(start, self.offsets[number])
        if crashes:
            self.stop()
            self.restart()
            return True
        self.batches.append(rows)
        self.commit_count += 1
        return True

    def _plan(self) -> bool:
        start = self.offsets[-1] if self.offsets else self._initial()
        limit = self.reader.getDefaultReadLimit()
        end = json.dumps(self.reader.latestOffset(json.loads(start), limit))
        assert self.reader.reportLatestOffset() is not None
        if end == start:
            return False
        self.offsets.append(end)
        return True

    def _initial(self) -> str:
        if self._start is None:
            self._start = json.dumps(self.reader.initialOffset())
        return self._start

    def _read(self, start: str, end: str) -> list[Place]:
        # Tasks get a reader that was made in a process of its own.
        reader = HeadwaterStreamReader(self.options, source_schema(self.options))
        reader = pickle.loads(pickle.dumps(reader))
        partitions = self.reader.partitions(json.loads(start), json.loads(end))
        rows: list[Place] = []
        for partition in pickle.loads(pickle.dumps(partitions)):
            for batch in reader.read(partition):
                rows += _places(batch)
        return rows

    def read_all(self) -> Any:
        """Where everything ends, whatever the limits."""
        start = self.offsets[-1] if self.offsets else self._initial()
        return self.reader.latestOffset(json.loads(start), ReadAllAvailable())


def _places(batch: Any) -> Iterable[Place]:
    columns = [batch.column(name).to_pylist() for name in ("topic", "partition", "offset")]
    return zip(*columns, strict=True)
