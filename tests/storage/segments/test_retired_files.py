"""Segments on their way out: renamed at once, removed later."""

from headwater.sim.campaigns.logs import NOW_MS, new_disk, sized_batch
from headwater.storage.disk.handles import HandleCache
from headwater.storage.log_config import LogConfig
from headwater.storage.segments.retired_files import RetiredFiles
from headwater.storage.segments.segment import LogSegment
from headwater.wire.records import iter_batch_headers

DISK_NAMES = ["00000000000000000007.index", "00000000000000000007.log"]


def test_files_are_renamed_at_once_and_removed_when_they_are_due() -> None:
    disk = new_disk()
    handles = HandleCache(disk, 2)
    retired = RetiredFiles(disk)
    segments = [
        LogSegment(disk, handles, "/data", base, LogConfig(), created_ms=NOW_MS)
        for base in (0, 7, 9)
    ]
    for segment in segments:
        batch = sized_batch(segment.base_offset, 100)
        segment.append(batch, [header for _, header in iter_batch_headers(batch)])
    retired.retire(segments[:2], due_ms=1000)
    retired.retire(segments[2:], due_ms=2000)
    assert (len(retired), retired.size_bytes) == (3, 300)
    names = disk.list_dir("/data")
    assert len(names) == 9
    assert all(name.endswith(".deleted") for name in names)
    assert segments[1].region(0, 100).read() == sized_batch(7, 100)
    assert retired.remove_due(999) == 0
    assert retired.remove_due(1000) == 2
    assert {name[:20] for name in disk.list_dir("/data")} == {f"{9:020}"}
    assert retired.take_due(5000) == [segments[2]]
    assert (len(retired), retired.size_bytes) == (0, 0)
    assert len(disk.list_dir("/data")) == 3  # Whoever took it removes it.


def test_closing_keeps_the_files_for_the_next_start_to_remove() -> None:
    disk = new_disk()
    handles = HandleCache(disk, 8)
    retired = RetiredFiles(disk)
    segment = LogSegment(disk, handles, "/data", 7, LogConfig(), created_ms=NOW_MS)
    retired.retire([segment], due_ms=1000)
    retired.close()
    assert handles.open_count == 0
    assert disk.list_dir("/data")[:2] == [f"{name}.deleted" for name in DISK_NAMES]
