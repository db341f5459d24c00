"""Reports the progress of streaming queries as the offsets of consumer groups.

    reporter = report_lag(spark)
    query = spark.readStream.format("headwater").option("headwater.group", "billing")...

A listener of Spark's, and a thread. Spark calls listeners one after the other on one thread of its
own, which must not wait for a network: there the report is read and put into the backlog, and the
reporter's thread commits. What goes wrong with a commit never reaches a query; it is a line in the
log (`headwater.pipeline.lag`), and is tried again.

Spark tells of a batch a moment after it is finished, and of the last one too. A program that ends
at once calls `flush()` before, or `close()`; an orderly end of Python does so for it.
"""

from __future__ import annotations

import atexit
import logging
import threading
import time
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.streaming.listener import (
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from headwater.base.errors import KafkaError
from headwater.pipeline.lag.commit_backlog import CommitBacklog, DueCommit
from headwater.pipeline.lag.finished_batch import FinishedBatch, SourceReport, offsets_to_commit
from headwater.pipeline.lag.group_committer import GroupCommitter
from headwater.pipeline.lag.group_standings import GroupStandings, Standings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_logger: Final = logging.getLogger("headwater.pipeline.lag")
FLUSH_TIMEOUT_S: Final = 30.0
EXIT_TIMEOUT_S: Final = 5.0


def report_lag(spark: SparkSession, **client_settings: Any) -> LagReporter:
    """Commit the progress of all streaming queries of `spark`, from now on, as consumer groups.

    The group is the option `headwater.group` of a source, else `spark-` and the query's name, or
    its id if it has none. `client_settings` are for the admin client that commits; with
    `bootstrap_servers` among them, queries that read with Spark's own `format("kafka")` are
    reported too.
    """
    reporter = LagReporter(spark, client_settings)
    spark.streams.addListener(reporter)
    return reporter


class LagReporter(StreamingQueryListener):
    """What `report_lag` returns; `close()` ends it."""

    def __init__(self, spark: SparkSession, client_settings: dict[str, Any]) -> None:
        self._session = spark
        self._committer = GroupCommitter(client_settings)
        self._standings = GroupStandings()
        self._backlog = CommitBacklog()
        #: Guards these two and the marks below.
        self._changed = threading.Condition()
        self._is_committing = False
        self._is_closed = False
        self._thread = threading.Thread(target=self._commit_all, name="headwater-lag", daemon=True)
        self._thread.start()
        atexit.register(self.close, EXIT_TIMEOUT_S)

    # -- called by Spark -------------------------------------------------------------------------

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        """Nothing is known about offsets yet."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        progress = event.progress
        batch = FinishedBatch(
            str(progress.id),
            progress.name,
            progress.batchId,
            [SourceReport(source.description, source.endOffset) for source in progress.sources],
        )
        self.add(batch)

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        """Its last batch was told of before. One that has failed still holds its group back."""
        if event.exception is None:
            with self._changed:
                self._commit_soon(self._standings.forget(str(event.id)), "Spark")

    # -- called by anybody -----------------------------------------------------------------------

    def add(self, batch: FinishedBatch) -> None:
        """Have the offsets of `batch` committed soon."""
        found = offsets_to_commit(batch, self._committer.bootstrap_servers)
        with self._changed:
            self._commit_soon(self._standings.report(batch.query_id, found), batch.note)

    def _commit_soon(self, standings: Standings, note: str) -> None:
        for key, positions in standings.items():
            self._backlog.add(key, positions, note)
        self._changed.notify_all()

    def flush(self, timeout_s: float = FLUSH_TIMEOUT_S) -> bool:
        """Wait until the progress of all batches that are finished by now is committed.

        Returns whether it is; the log says why not.
        """
        deadline_s = time.monotonic() + timeout_s
        self._await_events(timeout_s)
        with self._changed:
            self._backlog.hurry()
            self._changed.notify_all()
            return self._changed.wait_for(
                lambda: self._backlog.is_empty and not self._is_committing,
                max(0.0, deadline_s - time.monotonic()),
            )

    def close(self, timeout_s: float = FLUSH_TIMEOUT_S) -> None:
        """Commit what is left, and stop listening."""
        with self._changed:
            if self._is_closed:
                return
        self.flush(timeout_s)
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        atexit.unregister(self.close)
        if self._spark_is_running():
            self._session.streams.removeListener(self)
        self._thread.join(timeout_s)

    # -- on the reporter's thread ----------------------------------------------------------------

    def _commit_all(self) -> None:
        try:
            while (due := self._await_due()) is not None:
                self._commit(due)
        finally:
            self._committer.close()

    def _await_due(self) -> DueCommit | None:
        with self._changed:
            while True:
                now_s = time.monotonic()
                due = self._backlog.next_due(now_s)
                if due is not None:
                    self._is_committing = True
                    return due
                if self._is_closed:
                    return None
                self._changed.wait(self._backlog.wait_s(now_s))

    def _commit(self, due: DueCommit) -> None:
        failure: Exception | None = None
        refusal = ""
        try:
            refusal = self._committer.commit(due)
        except Exception as error:
            # Whatever it is, queries go on; what is not an error of the cluster shows its type.
            failure = error
        with self._changed:
            if failure is None:
                is_news = self._backlog.settled(due, refusal)
            else:
                is_news = self._backlog.failed(due, time.monotonic())
            self._is_committing = False
            self._changed.notify_all()
        if is_news:
            told = str(failure) if isinstance(failure, KafkaError) else repr(failure)
            _logger.warning(
                "The progress of a query was not committed as group '%s' on %s: %s",
                due.key.group,
                due.key.bootstrap_servers,
                refusal or f"{told} This is tried again.",
            )

    # -- Spark -----------------------------------------------------------------------------------

    def _await_events(self, timeout_s: float) -> None:
        """Let Spark deliver what it has to tell; it does so on a thread of its own."""
        if self._spark_is_running():
            bus = self._session.sparkContext._jsc.sc().listenerBus()
            try:
                bus.waitUntilEmpty(int(timeout_s * 1000))
            except Exception as failure:
                _logger.debug("Spark did not tell of all batches in time: %r", failure)

    def _spark_is_running(self) -> bool:
        context = getattr(self._session, "_sc", None)
        return context is not None and getattr(context, "_jsc", None) is not None
