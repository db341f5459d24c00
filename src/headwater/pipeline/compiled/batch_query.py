"""A batch that runs beside others and looks like a streaming query: for backfills and static rows.

Whoever watches a pipeline watches one list. The work runs in a thread of its own under a job tag,
by which `stop` cancels what Spark is doing for it. Work that was done for good leaves a marker, so
that a repeated backfill does not write its rows again, and an identity that outlasts a crash, by
which a sink knows what a broken-off attempt has written.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from pyspark.sql import Observation, SparkSession

from headwater.pipeline.compiled.observed_rows import observed
from headwater.pipeline.compiled.row_counts import READ, SOURCE_METRICS


class BatchMarker:
    """Where a batch notes its identity and that it is done; without a folder it forgets both."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self.identity: Final = self._read_identity() or self._new_identity()

    @property
    def is_done(self) -> bool:
        return self._folder is not None and (self._folder / "done").exists()

    def set_done(self) -> None:
        if self._folder is not None:
            (self._folder / "done").touch()

    def _read_identity(self) -> str:
        if self._folder is None or not (self._folder / "id").exists():
            return ""
        return (self._folder / "id").read_text().strip()

    def _new_identity(self) -> str:
        identity = str(uuid.uuid4())
        if self._folder is not None:
            self._folder.mkdir(parents=True, exist_ok=True)
            # Whole or not at all: a crash in between leaves a name that nobody reads.
            draft = self._folder / f"id.{identity}"
            draft.write_text(identity)
            draft.replace(self._folder / "id")
        return identity


class BatchQuery:
    """One batch under way, or done.

    `work` gets the identity, the same for every attempt, and returns how many rows it has written.
    """

    def __init__(
        self,
        name: str,
        spark: SparkSession,
        work: Callable[[str], int],
        marker: BatchMarker,
        sources: Mapping[str, Observation] = MappingProxyType({}),
    ) -> None:
        """`sources` are what is observed at each source that the work reads, by its name."""
        self._name = name
        self._spark = spark
        self._marker = marker
        self._sources = sources
        self._report: dict[str, Any] | None = None
        self._error: BaseException | None = None
        self._is_stopped = False
        self._tag = f"headwater-{uuid.uuid4()}"
        self.runId = str(uuid.uuid4())
        self._thread = threading.Thread(target=self._run, args=(work,), name=name, daemon=True)
        self._thread.start()

    @property
    def name(self) -> str | None:
        return self._name

    @property
    def id(self) -> str:
        return self._marker.identity

    @property
    def isActive(self) -> bool:
        return self._thread.is_alive()

    @property
    def lastProgress(self) -> dict[str, Any] | None:
        """As of a streaming query, with the parts that a watcher of runs looks at."""
        return self._report

    @property
    def recentProgress(self) -> list[dict[str, Any]]:
        return [] if self._report is None else [self._report]

    @property
    def status(self) -> dict[str, Any]:
        active = self.isActive
        return {
            "message": "Writing a batch" if active else "Done",
            "isDataAvailable": active,
            "isTriggerActive": active,
        }

    def exception(self) -> BaseException | None:
        return None if self._is_stopped else self._error

    def awaitTermination(self, timeout: int | None = None) -> bool | None:
        """As of a streaming query: raise what it failed with; with a timeout tell if it is over."""
        self._thread.join(timeout)
        error = self.exception()
        if error is not None:
            raise error
        return None if timeout is None else not self._thread.is_alive()

    def processAllAvailable(self) -> None:
        self.awaitTermination()

    def stop(self) -> None:
        """Cancel what Spark does for it, and wait until it has ended."""
        self._is_stopped = self._is_stopped or self.isActive
        self._spark.sparkContext.cancelJobsWithTag(self._tag)
        self._thread.join()

    def _run(self, work: Callable[[str], int]) -> None:
        try:
            if not self._marker.is_done:
                _make_active(self._spark)
                self._spark.sparkContext.addJobTag(self._tag)
                started_s = time.monotonic()
                row_count = work(self._marker.identity)
                self._marker.set_done()
                self._report = self._done(row_count, time.monotonic() - started_s)
        # It is told to whoever asks for it, as a streaming query does.
        except BaseException as error:
            self._error = error

    def _done(self, row_count: int, duration_s: float) -> dict[str, Any]:
        sources = {name: observed(each) for name, each in self._sources.items()}
        read_count = sum(counts.get(READ, 0) for counts in sources.values())
        duration_ms = round(duration_s * 1000)
        return {
            "id": self.id,
            "batchId": 0,
            "numInputRows": read_count,
            "processedRowsPerSecond": read_count / max(duration_s, 1e-3),
            "durationMs": {"addBatch": duration_ms, "triggerExecution": duration_ms},
            "observedMetrics": {
                f"{SOURCE_METRICS}{name}": counts for name, counts in sources.items() if counts
            },
            "sink": {"numOutputRows": row_count},
        }


def _make_active(spark: SparkSession) -> None:
    """Tell Java which session this thread works for: data sources are looked up in that one."""
    session: Any = spark
    java = session._jvm
    if java is not None:
        session._get_j_spark_session_class(java).setActiveSession(session._jsparkSession)
