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
class QueryRecord:
    """How far a query of a run got. What is not known yet is None."""

    name: str
    is_active: bool = True
    batch_id: int | None = None
    #: Rows that this run has read for the query.
    row_count: int = 0
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

    def to_json(self) -> str:
        return json.dumps(asdict(self), indent=2, ensure_ascii=False) + "\n"

    @classmethod
    def from_json(cls, text: str) -> RunRecord | None:
        """None if it is not the record of a run."""
        try:
            found = json.loads(text)
            queries = tuple(QueryRecord(**_known(QueryRecord, each)) for each in found["queries"])
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
