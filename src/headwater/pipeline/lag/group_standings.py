"""Where groups stand whose topics several queries read: each partition where its slowest query is.

A pipeline with two sinks is two queries over the same source, each at its own pace, and both are
reported as one group. What is done is what both have done, so the one that is behind counts, for as
long as it runs; also after it has failed, because nobody has done its work.
"""

from __future__ import annotations

from collections.abc import Mapping

from headwater.base.ids import TopicPartition
from headwater.pipeline.lag.finished_batch import GroupKey

Standings = dict[GroupKey, dict[TopicPartition, int]]


class GroupStandings:
    """Of the queries that have finished a batch by now."""

    def __init__(self) -> None:
        #: By group and query.
        self._positions: dict[GroupKey, dict[str, dict[TopicPartition, int]]] = {}

    def report(
        self, query_id: str, found: Mapping[GroupKey, Mapping[TopicPartition, int]]
    ) -> Standings:
        """A query stands there now: where its groups do."""
        for key, positions in found.items():
            self._positions.setdefault(key, {})[query_id] = dict(positions)
        return {key: self._slowest(key) for key in found}

    def forget(self, query_id: str) -> Standings:
        """A query has ended in order, and holds nobody back: where the groups of others stand."""
        left: Standings = {}
        for key, queries in self._positions.items():
            if queries.pop(query_id, None) is not None and queries:
                left[key] = self._slowest(key)
        return left

    def _slowest(self, key: GroupKey) -> dict[TopicPartition, int]:
        slowest: dict[TopicPartition, int] = {}
        for positions in self._positions[key].values():
            for partition, offset in positions.items():
                slowest[partition] = min(offset, slowest.get(partition, offset))
        return slowest
