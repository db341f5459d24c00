"""The segment that compaction writes."""

from __future__ import annotations

from random import Random

import pytest

from headwater.base.checks import InvariantError
from headwater.sim.campaigns.logs import NOW_MS
from headwater.sim.disk.faulty_disk import FaultyDisk
from headwater.storage.compaction import cleaned_segment
from headwater.storage.compaction.cleaned_segment import CleanedSegment, remove_files_at
from headwater.storage.disk.files import read_bytes
from headwater.storage.disk.handles import HandleCache
from headwater.storage.indexes.transaction_index import AbortedTransaction
from headwater.storage.log_config import LogConfig
from headwater.storage.segments.segment import LogSegment
from headwater.storage.segments.segment_files import CLEANED, LOG, SEGMENT_SUFFIXES, segment_path
from headwater.wire.records import Record, encode_batch, read_batch_header
from tests.support.models.hidden_log import delayed_batch

CONFIG = LogConfig(index_interval_bytes=100)
BATCHES = [
    encode_batch([Record(offset, NOW_MS + offset, b"key", bytes(50))])
    for offset in range(40, 70, 3)
]
BATCHES.append((70).to_bytes(8, "big") + delayed_batch(b"hidden")[8:])


def write(disk: FaultyDisk, buffer_bytes: int = 300) -> CleanedSegment:
    cleaned = CleanedSegment(disk, HandleCache(disk, 9), "/log", 40, CONFIG, buffer_bytes)
    for batch in BATCHES:
        cleaned.append(batch, read_batch_header(batch))
    cleaned.add_aborted(AbortedTransaction(1, 40, 50, 51))
    cleaned.add_aborted(None)
    cleaned.finish()
    cleaned.close()
    return cleaned


def test_it_is_the_segment_that_appends_would_have_made() -> None:
    disk = FaultyDisk(directories=["/log"])
    cleaned = write(disk)
    assert cleaned.size_bytes == sum(map(len, BATCHES))
    live = LogSegment(disk, HandleCache(disk, 9), "/log", 40, CONFIG, created_ms=0)
    for batch in BATCHES:
        live.append(batch, [read_batch_header(batch)])
    live.transaction_index.append(AbortedTransaction(1, 40, 50, 51))
    live.seal()
    for suffix in SEGMENT_SUFFIXES:
        expected = read_bytes(disk, segment_path("/log", 40, suffix))
        assert expected
        assert read_bytes(disk, segment_path("/log", 40, suffix, CLEANED)) == expected


def test_what_an_earlier_job_left_is_not_continued() -> None:
    disk = FaultyDisk(directories=["/log"])
    write(disk)
    cleaned = write(disk)
    path = segment_path("/log", 40, LOG, CLEANED)
    assert disk.size(path) == cleaned.size_bytes
    remove_files_at(disk, "/log", [40, 99])
    assert disk.list_dir("/log") == []


def test_all_of_it_is_durable_once_its_names_are() -> None:
    disk = FaultyDisk(directories=["/log"])
    write(disk)
    disk.sync_dir("/log")
    for seed in range(20):
        assert disk.after_power_loss(Random(seed)).contents() == disk.contents()


def test_writes_are_gathered() -> None:
    disk = FaultyDisk(directories=["/log"])
    write(disk, buffer_bytes=1 << 20)
    log_path = segment_path("/log", 40, LOG, CLEANED)
    assert disk.operations.count(("write", log_path)) == 1


def test_it_does_not_outgrow_its_index(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cleaned_segment, "_SIZE_BYTES_MAX", 500)
    with pytest.raises(InvariantError):
        write(FaultyDisk(directories=["/log"]))
