"""What there is to commit after a batch: from the report of a query, the offsets of each group.

A query may read several sources, on several clusters. What its report says about a source of
`format("headwater")` names cluster and group (see `connector.offset_json`); about one of Spark's
own Kafka connector it names neither, so the cluster must be known otherwise. Sources that are not
topics are passed over.

Where two sources of a query read the same partition for the same group, the one that is behind
counts: what lies behind both is what is done.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from headwater.base.ids import TopicPartition
from headwater.pipeline.connector.offset_json import (
    HEADWATER_ENTRY,
    OffsetJsonError,
    SourceOffsets,
)

GROUP_PREFIX: Final = "spark-"
#: How Spark's own connector for Kafka describes its streams: KafkaV2[Subscribe[orders]].
KAFKA_DESCRIPTION: Final = "KafkaV2["


class GroupKey(NamedTuple):
    """A group on a cluster, which goes by the addresses that it is first contacted at."""

    bootstrap_servers: str
    group: str


@dataclass(frozen=True, slots=True)
class SourceReport:
    """A source of a query, as a progress event tells of it; the offset is JSON."""

    description: str
    end_offset: str


@dataclass(frozen=True, slots=True)
class FinishedBatch:
    """A batch that a query has finished, and where its sources stand since."""

    query_id: str
    query_name: str | None
    batch_id: int
    sources: Sequence[SourceReport]

    @property
    def default_group(self) -> str:
        return f"{GROUP_PREFIX}{self.query_name or self.query_id}"

    @property
    def note(self) -> str:
        """What is stored beside the offsets, for people who look at them."""
        return f"Spark query {self.query_name or self.query_id}, batch {self.batch_id}"


def offsets_to_commit(
    batch: FinishedBatch, bootstrap_servers: str = ""
) -> dict[GroupKey, dict[TopicPartition, int]]:
    """The offsets of each group; `bootstrap_servers` are for sources that name no cluster."""
    found: dict[GroupKey, dict[TopicPartition, int]] = {}
    for source in batch.sources:
        offsets = _offsets_of(source)
        if offsets is None:
            continue
        servers = offsets.bootstrap_servers or bootstrap_servers
        if not servers or not offsets.positions:
            continue
        key = GroupKey(servers, offsets.group or batch.default_group)
        positions = found.setdefault(key, {})
        for partition, offset in offsets.positions.items():
            positions[partition] = min(offset, positions.get(partition, offset))
    return found


def _offsets_of(source: SourceReport) -> SourceOffsets | None:
    """Where a source stands, if it reads topics and has read any."""
    try:
        value = json.loads(source.end_offset)
    except ValueError:
        # A query that has read nothing yet reports null, which Python's side of Spark calls None.
        return None
    if not isinstance(value, dict):
        return None
    if HEADWATER_ENTRY not in value and not source.description.startswith(KAFKA_DESCRIPTION):
        return None
    try:
        return SourceOffsets.from_json(value)
    except OffsetJsonError:
        return None
