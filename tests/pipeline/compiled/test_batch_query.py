import threading
from pathlib import Path
from typing import cast

import pytest
from pyspark.sql import SparkSession

from headwater.pipeline.compiled.batch_query import BatchMarker, BatchQuery


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


def test_work_that_is_done_is_not_done_again(tmp_path: Path) -> None:
    session, _ = _session()
    seen: list[str] = []
    for _ in range(3):
        query = BatchQuery("totals", session, seen.append, BatchMarker(tmp_path / "totals"))
        query.awaitTermination()
        assert not query.isActive
        assert query.exception() is None
    assert len(seen) == 1
    assert query.id == seen[0]


def test_work_that_failed_is_tried_again_under_the_same_identity(tmp_path: Path) -> None:
    session, _ = _session()
    seen: list[str] = []

    def fail(identity: str) -> None:
        seen.append(identity)
        raise OSError("the disk is full")

    query = BatchQuery("totals", session, fail, BatchMarker(tmp_path))
    with pytest.raises(OSError, match="disk is full"):
        query.awaitTermination()
    assert isinstance(query.exception(), OSError)
    BatchQuery("totals", session, seen.append, BatchMarker(tmp_path)).awaitTermination()
    assert len(seen) == 2
    assert seen[0] == seen[1]


def test_without_a_folder_every_run_is_a_new_one() -> None:
    assert BatchMarker(None).identity != BatchMarker(None).identity
    marker = BatchMarker(None)
    marker.set_done()
    assert not marker.is_done


def test_stop_cancels_its_jobs_and_is_no_failure() -> None:
    session, context = _session()

    def wait(identity: str) -> None:
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
