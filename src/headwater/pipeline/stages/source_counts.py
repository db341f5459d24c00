"""What a task that reads a range has read, by the records' own times.

The range names the piece: its query, its partition and where it begins. Spark reads a batch that
it has planned until it is done, and always the same ranges.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import numpy as np
from pyspark import TaskContext

from headwater.delivery.audit.audit_stage import BUCKET_MS
from headwater.delivery.audit.stage_counts import StageCounts
from headwater.pipeline.connector.offset_ranges import OffsetRange
from headwater.pipeline.stages.stage_publisher import CountedPiece, publish_counts

if TYPE_CHECKING:
    from headwater.client.columns.decoding.decoded_columns import RecordColumns

TIER: Final = "source"
#: Kept in the checkpoint, and so the same after every restart.
_QUERY_ID: Final = "sql.streaming.queryId"


def query_of_task() -> str:
    """The streaming query that the running task is of, as Spark says."""
    context = TaskContext.get()
    query = None if context is None else context.getLocalProperty(_QUERY_ID)
    if query is None:
        raise RuntimeError("Records of a stream are read outside of a task of a query.")
    return str(query)


class SourceCounts:
    """For one task."""

    def __init__(self, stage: str, query: str, offsets: OffsetRange) -> None:
        self._offsets = offsets
        work = f"{query}/{offsets.topic_partition}"
        self._piece = CountedPiece(TIER, stage, work, offsets.start)
        self.counts = StageCounts(BUCKET_MS)

    def add(self, columns: RecordColumns) -> None:
        """These were read."""
        topic, partition = self._offsets.topic_partition
        now_ms = time.time_ns() // 1_000_000
        # A size of -1 is null.
        sizes = np.maximum(columns.key_sizes, 0) + np.maximum(columns.value_sizes, 0)
        buckets = columns.timestamps // BUCKET_MS
        for bucket in np.unique(buckets):
            is_of = buckets == bucket
            times = columns.timestamps[is_of]
            count, size_bytes = len(times), int(sizes[is_of].sum())
            # The oldest tells the latency, and the newest that the bucket has it.
            self.counts.add(topic, partition, int(times.min()), count, size_bytes, now_ms)
            self.counts.add(topic, partition, int(times.max()), 0, 0, now_ms)

    def publish(self, client: Mapping[str, str]) -> None:
        """The range is read to its end."""
        publish_counts(client, self._piece, self.counts)
