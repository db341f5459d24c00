import threading
from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest
from pyspark.sql import SparkSession

from headwater.pipeline.compiled.batch_query import BatchMarker, BatchQuery
from headwater.pipeline.runs.query_progress import advanced
from headwater.pipeline.runs.run_record import QueryRecord, RowCounts


class FakeContext:
    """Notes the tags of jobs, and cancels by setting an event."""

    def __init__(self) -> None:
        self.tags: list[str] = []
        self.cancelled = threading.Event()

    def addJobTag(self, tag: str) -> None:
        self.tags.append(tag)

    def cancelJobsWithTag(self, tag: str) -> None:
        if tag in self.tags:
            self.cancelled.set()


class FakeSession:
    _jvm = None

    def __init__(self) -> None:
        self.sparkContext = FakeContext()


def _session() -> tuple[SparkSession, FakeContext]:
    session = FakeSession()
    return cast(SparkSession, session), session.sparkContext


def _noting(seen: list[str], row_count: int = 0) -> Callable[[str], int]:
    """Work that notes the identity it is given."""

    def work(identity: str) -> int:
        seen.append(identity)
        return row_count

    return work


def test_what_was_written_is_reported_once_it_is_done(tmp_path: Path) -> None:
    session, _ = _session()
    query = BatchQuery("totals", session, _noting([], 12), BatchMarker(tmp_path))
    query.awaitTermination()
    record = advanced(QueryRecord("totals"), query.recentProgress)
    assert (record.batch_id, record.rows) == (0, RowCounts(written=12))
    again = BatchQuery("totals", session, _noting([], 12), BatchMarker(tmp_path))
    again.awaitTermination()
    assert again.lastProgress is None


def test_work_that_is_done_is_not_done_again(tmp_path: Path) -> None:
    session, _ = _session()
    seen: list[str] = []
    for _ in range(3):
        query = BatchQuery("totals", session, _noting(seen), BatchMarker(tmp_path / "totals"))
        query.awaitTermination()
        assert not query.isActive
        assert query.exception() is None
    assert len(seen) == 1
    assert query.id == seen[0]


def test_work_that_failed_is_tried_again_under_the_same_identity(tmp_path: Path) -> None:
    session, _ = _session()
    seen: list[str] = []

    def fail(identity: str) -> int:
        seen.append(identity)
        raise OSError("the disk is full")

    query = BatchQuery("totals", session, fail, BatchMarker(tmp_path))
    with pytest.raises(OSError, match="disk is full"):
        query.awaitTermination()
    assert isinstance(query.exception(), OSError)
    BatchQuery("totals", session, _noting(seen), BatchMarker(tmp_path)).awaitTermination()
    assert len(seen) == 2
    assert seen[0] == seen[1]


def test_without_a_folder_every_run_is_a_new_one() -> None:
    assert BatchMarker(None).identity != BatchMarker(None).identity
    marker = BatchMarker(None)
    marker.set_done()
    assert not marker.is_done


def test_stop_cancels_its_jobs_and_is_no_failure() -> None:
    session, context = _session()

    def wait(identity: str) -> int:
        context.cancelled.wait(60)
        raise RuntimeError("cancelled")

    query = BatchQuery("totals", session, wait, BatchMarker(None))
    assert query.status["isDataAvailable"]
    while not context.tags:
        assert query.awaitTermination(timeout=0) is False
    query.stop()
    assert not query.isActive
    assert query.exception() is None
    assert query.awaitTermination(timeout=1) is True
