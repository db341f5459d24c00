"""What a run writes down about itself, as values and as JSON: who it is, and how far it got."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from enum import StrEnum
from typing import Any


class RunState(StrEnum):
    """How a run is, or how it ended. `crashed` is never written: others see it."""

    STARTING = "starting"
    RUNNING = "running"
    STOPPING = "stopping"
    FINISHED = "finished"
    STOPPED = "stopped"
    FAILED = "failed"
    CRASHED = "crashed"

    @property
    def is_over(self) -> bool:
        return self in (self.FINISHED, self.STOPPED, self.FAILED, self.CRASHED)


@dataclass(frozen=True, slots=True)
class RowCounts:
    """Rows that were read, written to a sink, and rejected because they could not be decoded."""

    read: int = 0
    written: int = 0
    rejected: int = 0

    def __add__(self, other: RowCounts) -> RowCounts:
        return RowCounts(
            self.read + other.read, self.written + other.written, self.rejected + other.rejected
        )


@dataclass(frozen=True, slots=True)
class SourceRows:
    """Records of a source that a query has read, and how many of them it rejected."""

    read: int = 0
    rejected: int = 0


@dataclass(frozen=True, slots=True)
class QueryRecord:
    """How far a query of a run got. What is not known yet is None.

    Rows are those of the batches that this run has committed. A batch that a crash broke off is
    counted by the run that does it again.
    """

    name: str
    is_active: bool = True
    #: Whether its first batch, or a later one, is planned or done.
    is_planned: bool = False
    batch_id: int | None = None
    rows: RowCounts = RowCounts()
    #: The rows of the newest batch alone.
    batch_rows: RowCounts = RowCounts()
    #: What was read of each source, by its name; "" stands for what has none.
    sources: Mapping[str, SourceRows] = field(default_factory=dict)
    #: The source whose rejected records this query writes, if that is what it is for.
    dead_letters_of: str = ""
    rows_per_s: float | None = None
    batch_ms: int | None = None
    #: ISO 8601, as Spark tells it.
    watermark: str | None = None
    #: Records that are there and not read yet, by source; None where the source cannot tell.
    lag: Mapping[str, int | None] = field(default_factory=dict)
    #: Rows that windows, joins and deduplication remember.
    state_row_count: int = 0
    error: str = ""

    @property
    def lag_total(self) -> int | None:
        known = [count for count in self.lag.values() if count is not None]
        return sum(known) if known else None

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> QueryRecord:
        """The record out of what JSON gives; an older one has no counts of this kind."""
        known = _known(cls, values)
        for name in ("rows", "batch_rows"):
            if name in known:
                known[name] = RowCounts(**_known(RowCounts, known[name]))
        sources = known.pop("sources", {})
        found = {name: SourceRows(**_known(SourceRows, each)) for name, each in sources.items()}
        return cls(**known, sources=found)


@dataclass(frozen=True, slots=True)
class RunRecord:
    """A run as `run.json` holds it."""

    pipeline: str
    state: RunState
    pid: int
    host: str
    started_ms: int
    updated_ms: int
    mode: str = "continuous"
    file: str = ""
    master: str = ""
    spark_ui: str = ""
    #: The file with Spark's own log.
    spark_log: str = ""
    ended_ms: int | None = None
    error: str = ""
    queries: tuple[QueryRecord, ...] = ()

    @property
    def rows(self) -> RowCounts:
        """Rows of the whole run: what several queries read or rejected of a source counts once."""
        sources = {name for query in self.queries for name in query.sources}
        letters = {
            query.dead_letters_of: query.rows.written
            for query in self.queries
            if query.dead_letters_of
        }
        return RowCounts(
            read=sum(self._most(name).read for name in sources),
            written=sum(each.rows.written for each in self.queries if not each.dead_letters_of),
            rejected=sum(max(self._most(name).rejected, letters.get(name, 0)) for name in sources),
        )

    @property
    def rejected_all(self) -> bool:
        """Whether there were records, and not one of them could be decoded."""
        rows = self.rows
        return rows.rejected > 0 and rows.rejected >= rows.read and rows.written == 0

    def _most(self, source: str) -> SourceRows:
        """Of a source, what the query tells that is ahead of the others."""
        found = [query.sources[source] for query in self.queries if source in query.sources]
        return SourceRows(max(each.read for each in found), max(each.rejected for each in found))

    def to_json(self) -> str:
        values = {**asdict(self), "rows": asdict(self.rows)}
        return json.dumps(values, indent=2, ensure_ascii=False) + "\n"

    @classmethod
    def from_json(cls, text: str) -> RunRecord | None:
        """None if it is not the record of a run."""
        try:
            found = json.loads(text)
            queries = tuple(QueryRecord.from_values(each) for each in found["queries"])
            values = _known(cls, found)
            return cls(**{**values, "state": RunState(found["state"]), "queries": queries})
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return None


def seen_state(record: RunRecord, *, is_locked: bool) -> RunState:
    """How a run is, for somebody who looks at its record and its lock."""
    if is_locked or record.state.is_over:
        return record.state
    return RunState.CRASHED


def _known(kind: type, values: Mapping[str, Any]) -> dict[str, Any]:
    """Without what a newer version may have added."""
    names = {each.name for each in fields(kind)}
    return {name: value for name, value in values.items() if name in names}
