"""Sets rows aside that cannot be written, as dead letters in the form of all others.

A letter has the key, the value and the headers of its row; its headers tell where the row should
have gone, why it could not, and of which query and batch it is.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final, NamedTuple

from pyspark.sql.datasource import WriterCommitMessage

from headwater.client.admin import Admin
from headwater.client.columns.arrow.fields import header_type
from headwater.client.columns.arrow.library import load_arrow
from headwater.client.failures.letter_headers import Failure, Wanted, letter_headers
from headwater.client.failures.letter_topics import letter_group
from headwater.client.producer.producer import Producer
from headwater.pipeline.sink.row_faults import RowFault, RowJudge, size_with
from headwater.pipeline.sink.sink_options import SinkSettings, Tolerance
from headwater.pipeline.sink.topic_limits import FindLimits, LimitsOfTopics

if TYPE_CHECKING:
    import pyarrow

_log: Final = logging.getLogger(__name__)


class WriteName(NamedTuple):
    """Of which query, and which of its batches, rows are."""

    query: str
    batch: int


class Sorted(NamedTuple):
    """A batch told apart: what can be written, and letters for what cannot, if there are any."""

    rows: pyarrow.RecordBatch
    letters: pyarrow.RecordBatch | None


class FailedRows:
    """For one task."""

    def __init__(
        self,
        topic: str,
        judge: RowJudge,
        find_limits: FindLimits,
        name: WriteName,
        wall_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self.topic = topic
        self._judge = judge
        self._find_limits = find_limits
        self._name = name
        self._wall_ms = wall_ms
        self.count = 0

    def sort(self, batch: pyarrow.RecordBatch) -> Sorted:
        faults = self._judge.faults(batch, self._find_limits) if len(batch) else []
        if not faults:
            return Sorted(batch, None)
        self.count += len(faults)
        arrow = load_arrow()
        failed = arrow.array([fault.row for fault in faults], arrow.int64())
        is_failed = arrow.compute.is_in(arrow.array(range(len(batch))), value_set=failed)
        good = batch.filter(arrow.compute.invert(is_failed))
        return Sorted(good, self._letters(batch.take(failed), faults))

    def _letters(self, rows: pyarrow.RecordBatch, faults: list[RowFault]) -> pyarrow.RecordBatch:
        arrow = load_arrow()
        names = rows.schema.names
        before = rows.column("headers").to_pylist() if "headers" in names else [None] * len(rows)
        group, failed_ms = letter_group(self.topic), self._wall_ms()
        headers = []
        for fault, had in zip(faults, before, strict=True):
            # A header without a name cannot be in a letter either.
            kept = [
                (each["key"], _bytes(each["value"]))
                for each in had or ()
                if each is not None and each["key"] is not None
            ]
            failure = Failure(group, str(fault.error), type(fault.error).__name__, failed_ms)
            wanted = Wanted(fault.topic, fault.partition, *self._name)
            made = letter_headers(kept, failure, wanted=wanted)
            headers.append([{"key": key, "value": value} for key, value in made])
        columns = {name: rows.column(name) for name in ("key", "value") if name in names}
        columns["headers"] = arrow.array(headers, header_type(arrow))
        return arrow.RecordBatch.from_pydict(columns)


def failed_rows(
    settings: SinkSettings,
    tolerance: Tolerance,
    producer: Producer,
    admin: Admin,
    name: WriteName,
) -> FailedRows:
    """What sets aside rows of a task that these clients write."""
    judge = RowJudge(settings.topic, tolerance.row_bytes_max, size_with(settings.client))
    return FailedRows(tolerance.topic, judge, LimitsOfTopics(producer, admin), name)


def report_failed(
    settings: SinkSettings, batch: int, messages: Iterable[WriterCommitMessage | None]
) -> None:
    """Say on the driver how many rows of a batch its tasks set aside, if any."""
    count = sum(getattr(each, "failed_count", 0) for each in messages)
    if count and settings.tolerance is not None:
        _log.warning(
            "Batch %d: %s could not be written and became dead letters in the topic %s.",
            batch,
            "1 row" if count == 1 else f"{count:,} rows",
            settings.tolerance.topic,
        )


def _bytes(value: bytes | str | None) -> bytes | None:
    return value.encode() if isinstance(value, str) else value
