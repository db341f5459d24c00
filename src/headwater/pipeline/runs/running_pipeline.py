"""The loop around the queries of a run: it watches them, writes the record, and ends them.

Queries are anything with the names of Spark's `StreamingQuery` that `Query` lists; time and waiting
are handed in, so the whole loop runs in tests without Spark.

An orderly end lets a query finish the batch that it is in: it is stopped when it is between two
batches or has just finished one, or when the time for that is over. Being stopped in the middle
loses nothing either, the batch is just done again by the next run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from enum import Enum
from types import MappingProxyType
from typing import Any, Final, Protocol

from headwater.pipeline.runs.query_progress import RowsOfBatch, advanced
from headwater.pipeline.runs.run_directory import RunDirectory, StopRequest
from headwater.pipeline.runs.run_record import QueryRecord, RunRecord, RunState

POLL_S: Final = 0.5
STOP_POLL_S: Final = 0.05
GRACE_S: Final = 60.0
#: What Spark says of a query, and of a batch, whose rows are on their way.
_AT_WORK: Final = ("Processing", "Writing")
#: A record is written at least so often, so that its time tells that the run is alive.
WRITE_MS: Final = 5_000


class Query(Protocol):
    """What is used of Spark's queries, and of batches that look like them."""

    @property
    def name(self) -> str | None: ...
    @property
    def isActive(self) -> bool: ...
    @property
    def status(self) -> Mapping[str, Any]: ...
    @property
    def lastProgress(self) -> Mapping[str, Any] | None: ...
    @property
    def recentProgress(self) -> Sequence[Mapping[str, Any]]: ...
    def exception(self) -> BaseException | None: ...
    def stop(self) -> None: ...


class Wish(Enum):
    """What whoever started the run wants by now; signals change it."""

    GO_ON = 0
    STOP = 1
    STOP_NOW = 2


class RunEnvironment(Protocol):
    """Time, signals and eyes of a run."""

    def now_ms(self) -> int: ...
    def wait(self, duration_s: float) -> None:
        """Return after that time, or as soon as there is a new wish."""

    def wish(self) -> Wish: ...
    def show(self, record: RunRecord) -> None: ...


class RunningPipeline:
    """The run of some queries, from when they are started to their end."""

    def __init__(
        self,
        directory: RunDirectory,
        record: RunRecord,
        queries: Sequence[Query],
        environment: RunEnvironment,
        explain: Callable[[BaseException, str], str],
        grace_s: float = GRACE_S,
        is_endless: Callable[[Query], bool] = lambda query: False,
        written: RowsOfBatch = lambda query, batch: 0,
        dead_letters: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """`explain` makes a sentence of a failure, given the name of its query.

        `written` knows the rows of batches that Spark does not count, `dead_letters` the sources of
        the queries that write rejected records.

        A query that is endless has failed if it ends by itself, though it says nothing of a
        failure: Spark's thread for it has died of something that Spark does not expect.
        """
        self._directory = directory
        self._queries = queries
        self._environment = environment
        self._explain = explain
        self._grace_s = grace_s
        self._is_endless = is_endless
        self._written_rows = written
        names = (query.name or f"query {number}" for number, query in enumerate(queries, 1))
        records = (QueryRecord(name, dead_letters_of=dead_letters.get(name, "")) for name in names)
        self.record = replace(record, state=RunState.RUNNING, queries=tuple(records))
        self._written: RunRecord | None = None

    def run(self) -> RunRecord:
        """Until all queries have ended, one fails, or the run is to stop; the last record."""
        while True:
            self._look()
            failure = next((query for query in self.record.queries if query.error), None)
            if failure is not None:
                self._end(now=False, leave_out=failure.name)
                return self._close(RunState.FAILED, failure.error)
            if not any(query.is_active for query in self.record.queries):
                return self._close(RunState.FINISHED)
            wish = self._wish()
            if wish is not Wish.GO_ON:
                self.record = replace(self.record, state=RunState.STOPPING)
                self._write()
                self._end(now=wish is Wish.STOP_NOW)
                return self._close(RunState.STOPPED)
            self._write()
            self._environment.wait(POLL_S)

    # -- looking ---------------------------------------------------------------------------------

    def _look(self) -> None:
        pairs = zip(self._queries, self.record.queries, strict=True)
        self.record = replace(
            self.record,
            queries=tuple(self._seen(query, record) for query, record in pairs),
            updated_ms=self._environment.now_ms(),
        )

    def _seen(self, query: Query, record: QueryRecord) -> QueryRecord:
        if not record.is_active:
            return record
        # Asked before the progress: a query that has ended by now has reported all it will.
        is_active = query.isActive
        record = advanced(record, _reports(query, record), self._written_rows)
        record = replace(
            record, is_active=is_active, is_planned=record.is_planned or _has_planned(query)
        )
        if is_active:
            return record
        failure = query.exception()
        if failure is None and self.record.state is RunState.RUNNING and self._is_endless(query):
            ended = f"'{record.name}' has ended without giving a reason; Spark's log may say why"
            return replace(record, error=ended)
        if failure is None:
            return replace(record, rows_per_s=0.0)
        return replace(record, error=self._explain(failure, record.name))

    def _wish(self) -> Wish:
        request = self._directory.stop_request()
        asked = Wish.GO_ON if request is None else Wish.STOP
        if request is StopRequest.NOW:
            asked = Wish.STOP_NOW
        return max(asked, self._environment.wish(), key=lambda wish: wish.value)

    def _write(self) -> None:
        self._environment.show(self.record)
        if self._written is None or _is_news(self._written, self.record):
            self._directory.write(self.record)
            self._written = self.record

    # -- ending ----------------------------------------------------------------------------------

    def _end(self, *, now: bool, leave_out: str = "") -> None:
        """Stop all queries that are active, between batches if there is time for that."""
        waiting = {
            record.name: (query, _batch_of(query))
            for query, record in zip(self._queries, self.record.queries, strict=True)
            if record.name != leave_out and query.isActive
        }
        deadline_ms = self._environment.now_ms() + round(self._grace_s * 1000)
        while waiting:
            is_over = now or self._environment.now_ms() >= deadline_ms
            for name, (query, batch) in list(waiting.items()):
                if is_over or _is_between_batches(query, batch):
                    _stop(query)
                    del waiting[name]
            if waiting:
                now = now or self._wish() is Wish.STOP_NOW
                self._environment.wait(STOP_POLL_S)

    def _close(self, state: RunState, error: str = "") -> RunRecord:
        self._look()
        now_ms = self._environment.now_ms()
        queries = tuple(replace(query, is_active=False) for query in self.record.queries)
        self.record = replace(
            self.record,
            state=state,
            error=error,
            ended_ms=now_ms,
            updated_ms=now_ms,
            queries=queries,
        )
        self._environment.show(self.record)
        self._directory.write(self.record)
        return self.record


def _is_news(before: RunRecord, record: RunRecord) -> bool:
    """Whether more has changed than the time, or the time by much."""
    if record.updated_ms - before.updated_ms >= WRITE_MS:
        return True
    return replace(before, updated_ms=record.updated_ms) != record


def _reports(query: Query, record: QueryRecord) -> Sequence[Mapping[str, Any]]:
    """What the query has reported since the record; all of it only where a batch was missed."""
    last = query.lastProgress
    if last is None:
        return ()
    expected = 0 if record.batch_id is None else record.batch_id + 1
    return (last,) if last.get("batchId", 0) <= expected else query.recentProgress


def _has_planned(query: Query) -> bool:
    """Whether it is at work on rows, and no longer looking for what there is to do."""
    return str(query.status.get("message", "")).startswith(_AT_WORK)


def _batch_of(query: Query) -> object:
    last = query.lastProgress
    return None if last is None else (last.get("batchId"), last.get("timestamp"))


def _is_between_batches(query: Query, batch: object) -> bool:
    if not query.isActive or not query.status.get("isTriggerActive"):
        return True
    return _batch_of(query) != batch


def _stop(query: Query) -> None:
    try:
        query.stop()
    # The query is past caring: it failed at the last moment, or its session is gone.
    except Exception:
        return
