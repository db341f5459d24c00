"""How the rows of a run are counted: what sources are observed as, and what sinks have written.

Spark observes at each source how many records a batch read and how many of them were rejected, once
however often the query scans the source, and reports that with the batch (`SOURCE_METRICS`). It
counts what goes into a sink of its own kind too. Of a batch that a function of ours writes it knows
nothing: such functions tell it to `WrittenRows`.
"""

from __future__ import annotations

from typing import Final

#: What is observed at a source is called so, with the source's name behind it.
SOURCE_METRICS: Final = "headwater source "
READ: Final = "read"
REJECTED: Final = "rejected"

#: More than the reports that Spark keeps of a query.
_KEPT_BATCHES: Final = 200


class WrittenRows:
    """Rows by the id of the query and the number of the batch, for a while."""

    def __init__(self) -> None:
        self._rows: dict[str, dict[int, int]] = {}

    def add(self, query: str, batch_id: int, row_count: int) -> None:
        """Called by the thread of the query, before the batch is committed."""
        batches = self._rows.setdefault(query, {})
        batches[batch_id] = row_count
        batches.pop(batch_id - _KEPT_BATCHES, None)

    def of(self, query: str, batch_id: int) -> int:
        return self._rows.get(query, {}).get(batch_id, 0)
