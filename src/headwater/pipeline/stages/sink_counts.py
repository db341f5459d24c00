"""What a batch has written: tasks count what brokers have taken, and the driver tells it once.

A batch is counted by whole batches of records, each by its largest time, as brokers count. What a
failed attempt wrote is in the topic and not in these counts, unless it was a transaction's.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from headwater.delivery.audit.audit_stage import BUCKET_MS
from headwater.delivery.audit.stage_counts import StageCounts
from headwater.pipeline.stages.stage_publisher import CountedPiece, publish_counts

if TYPE_CHECKING:
    from headwater.client.producer.batches.delivery_group import DeliveryGroup
    from headwater.delivery.audit.stage_rows import Row
    from headwater.pipeline.sink.sink_options import SinkSettings

TIER: Final = "sink"


@dataclass(frozen=True)
class TaskCounts:
    """What the driver hears of a task: whose batch it was of, and rows without their names."""

    query: str
    rows: tuple[Row, ...]


class SinkCounts:
    """For one task."""

    def __init__(self) -> None:
        self._counts = StageCounts(BUCKET_MS)

    def add(self, delivery: DeliveryGroup) -> None:
        """These are written."""
        now_ms = time.time_ns() // 1_000_000
        for topic_partition, time_ms, count, size_bytes in delivery.written():
            self._counts.add(*topic_partition, time_ms, count, size_bytes, now_ms)

    def of_task(self, query: str) -> TaskCounts:
        return TaskCounts(query, tuple(self._counts.take({})))


def publish_batch(settings: SinkSettings, batch: int, messages: Iterable[Any]) -> None:
    """On the driver: tell what the tasks of a batch have counted, if they have.

    Those of a batch that was decided on before a crash have not, and what was told then stays.
    """
    told = [
        counts
        for each in messages
        if isinstance(counts := getattr(each, "counts", None), TaskCounts)
    ]
    if not told or not settings.audit_stage:
        return
    together = StageCounts(BUCKET_MS)
    for task in told:
        for row in task.rows:
            together.add_row(row)
    piece = CountedPiece(TIER, settings.audit_stage, told[0].query, batch)
    publish_counts(settings.client, piece, together)
