import json
import threading
from pathlib import Path

import pyarrow as pa
import pytest

from headwater.pipeline.lake.errors import (
    LakeConflictError,
    LakeDamagedError,
    LakeError,
    LakeMissingError,
    LakeOverlapError,
    LakeSchemaError,
)
from headwater.pipeline.lake.lake_table import LakeTable
from headwater.pipeline.lake.table.change import Change
from headwater.pipeline.lake.table.manifest import FULL_INTERVAL
from headwater.pipeline.lake.upkeep.compaction import compact
from headwater.pipeline.lake.upkeep.vacuum import vacuum
from headwater.pipeline.lake.verify.verify import verify
from tests.support.spark.lake_disk import LakeDisk
from tests.support.spark.lakes import archive_numbers, sorted_rows, write_rows


def numbers(*values: int) -> pa.Table:
    return pa.table({"number": pa.array(values, pa.int64())})


def values(table: LakeTable, version: int | None = None) -> list[int]:
    return sorted(table.read_arrow(version=version).column("number").to_pylist())


def test_a_batch_is_written_once_however_often_it_comes(tmp_path: Path) -> None:
    table = LakeTable(tmp_path / "lake")
    assert write_rows(table, numbers(1), writer="a", batch_id=0)
    assert not write_rows(table, numbers(1), writer="a", batch_id=0)
    assert write_rows(table, numbers(2), writer="b", batch_id=0)
    assert not write_rows(LakeTable(tmp_path / "lake"), numbers(3), writer="a", batch_id=0)
    assert values(table) == [1, 2]
    assert table.snapshot().writers == {"a": 0, "b": 0}
    # Nothing is left of the attempts that came too late.
    assert [each.sentence for each in verify(table)] == []


def test_older_versions_can_be_read(tmp_path: Path) -> None:
    table = LakeTable(tmp_path / "lake")
    for number in range(4):
        write_rows(table, numbers(number))
    write_rows(table, numbers(9), mode="overwrite")
    compact(table)
    assert values(table) == [9]
    assert values(table, 1) == [0]
    assert values(table, 4) == [0, 1, 2, 3]
    with pytest.raises(LakeMissingError, match="has no version 77"):
        table.snapshot(77)


def test_many_versions_are_read_from_few_manifests_and_old_ones_are_pruned(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("headwater.pipeline.lake.lake_table.KEPT_VERSIONS", 2 * FULL_INTERVAL)
    disk = LakeDisk()
    table = LakeTable("/lake", files=disk)
    for number in range(5 * FULL_INTERVAL + 3):
        write_rows(table, numbers(number), writer="w", batch_id=number)
    versions = table.versions()
    assert versions[-1] == 5 * FULL_INTERVAL + 3
    assert versions[0] % FULL_INTERVAL == 1
    assert 2 * FULL_INTERVAL <= len(versions) <= 4 * FULL_INTERVAL
    fresh = LakeTable("/lake", files=disk)
    assert values(fresh) == list(range(5 * FULL_INTERVAL + 3))
    assert not write_rows(fresh, numbers(0), writer="w", batch_id=0)
    assert not [each for each in verify(fresh) if each.is_problem]


def test_a_writer_that_slept_cannot_make_a_pruned_version_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("headwater.pipeline.lake.lake_table.KEPT_VERSIONS", 1)
    disk = LakeDisk()
    table = LakeTable("/lake", files=disk)
    write_rows(table, numbers(0))
    sleeper = LakeTable("/lake", files=disk)
    stale = sleeper.newest()
    for number in range(1, FULL_INTERVAL * 2 + 5):
        write_rows(table, numbers(number))
    assert 2 not in table.versions()
    newest = sleeper.newest
    looks = iter([stale])
    monkeypatch.setattr(sleeper, "newest", lambda: next(looks, None) or newest())
    assert write_rows(sleeper, numbers(-1), writer="sleeper", batch_id=0)
    assert values(table) == list(range(-1, FULL_INTERVAL * 2 + 5))
    assert 2 not in table.versions()


def test_writers_beside_each_other_and_a_compactor_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "lake"
    write_rows(LakeTable(path), numbers(-1))
    writer_count, batch_count = 3, 12
    is_over = threading.Event()
    failures: list[BaseException] = []

    def write(writer: int) -> None:
        table = LakeTable(path)
        for batch_id in range(batch_count):
            rows = numbers(writer * batch_count + batch_id)
            for _ in range(2):
                write_rows(table, rows, writer=str(writer), batch_id=batch_id)

    def compact_often() -> None:
        table = LakeTable(path)
        while not is_over.is_set():
            compact(table)

    def read_often() -> None:
        table, seen = LakeTable(path), 0
        while not is_over.is_set():
            found = values(table)
            assert len(found) >= seen and len(set(found)) == len(found)
            seen = len(found)

    def guarded(work: object, *arguments: object) -> None:
        try:
            assert callable(work)
            work(*arguments)
        except BaseException as failure:
            failures.append(failure)

    background = [
        threading.Thread(target=guarded, args=(work,)) for work in (compact_often, read_often)
    ]
    writers = [threading.Thread(target=guarded, args=(write, each)) for each in range(writer_count)]
    for thread in [*background, *writers]:
        thread.start()
    for thread in writers:
        thread.join()
    is_over.set()
    for thread in background:
        thread.join()
    assert failures == []
    table = LakeTable(path)
    assert values(table) == list(range(-1, writer_count * batch_count))
    assert not [each for each in verify(table, deep=True) if each.is_problem]


def test_a_change_that_was_worked_out_from_an_older_version_is_a_conflict(tmp_path: Path) -> None:
    table = LakeTable(tmp_path / "lake")
    write_rows(table, numbers(1))
    replaced = table.files()[0]
    write_rows(table, numbers(2), mode="overwrite")
    with pytest.raises(LakeConflictError, match="was replaced by somebody else"):
        table.commit(Change("compact", removed=(replaced.path,)))
    with pytest.raises(LakeConflictError, match="from version 1 to 2"):
        table.commit(Change("upsert", base_version=1))
    with pytest.raises(LakeConflictError, match="is gone"):
        (tmp_path / "lake" / replaced.path).unlink()
        table.commit(Change("append", (replaced,)))


def test_offsets_are_never_taken_in_twice(tmp_path: Path) -> None:
    table = LakeTable(tmp_path / "lake")
    assert archive_numbers(table, 0, 0, 10)
    assert archive_numbers(table, 1, 10, 20)
    assert not archive_numbers(table, 1, 10, 20)
    with pytest.raises(LakeOverlapError, match="Offsets 15 to 19 of orders-0"):
        archive_numbers(table, 2, 15, 25)
    [first, second] = table.snapshot().coverage.values()
    assert [(each.start, each.end, each.row_count) for each in first] == [(0, 20, 20)]
    assert [(each.start, each.end, each.row_count) for each in second] == [(0, 20, 20)]


@pytest.mark.parametrize("mode", ["append", "upsert", "overwrite"])
def test_an_archive_takes_records_of_topics_only(tmp_path: Path, mode: str) -> None:
    table = LakeTable(tmp_path / "lake")
    archive_numbers(table, 0, 0, 10)
    rows = table.read_arrow()
    with pytest.raises(LakeError, match="is an archive of topics"):
        write_rows(
            table,
            rows,
            mode=mode,
            keys=["partition", "offset"],
            partition_by=["topic", "date"],
        )
    other = LakeTable(tmp_path / "other")
    write_rows(other, rows, partition_by=["topic", "date"])
    with pytest.raises(LakeError, match="is not an archive of topics"):
        archive_numbers(other, 0, 0, 10)


def test_columns_may_be_added_and_nothing_else(tmp_path: Path) -> None:
    table = LakeTable(tmp_path / "lake")
    write_rows(table, numbers(1))
    write_rows(table, pa.table({"number": [2], "text": ["two"]}))
    assert sorted_rows(table.read_arrow()) == [
        {"number": 1, "text": None},
        {"number": 2, "text": "two"},
    ]
    with pytest.raises(LakeSchemaError, match="lacks the table's column 'text'"):
        write_rows(table, numbers(3))
    with pytest.raises(LakeSchemaError, match="'number' is long in the table and string in the"):
        write_rows(table, pa.table({"number": ["3"], "text": ["three"]}))
    with pytest.raises(LakeSchemaError, match="partitioned by nothing, and the batch wants 'text'"):
        write_rows(table, pa.table({"number": [3], "text": ["3"]}), partition_by=["text"])
    # An overwrite may change all of it.
    write_rows(table, pa.table({"other": [1.5]}), mode="overwrite")
    assert table.read_arrow().to_pylist() == [{"other": 1.5}]


def test_upserts_need_one_row_a_key_and_known_columns(tmp_path: Path) -> None:
    table = LakeTable(tmp_path / "lake")
    with pytest.raises(LakeError, match="two rows with the key number = 1"):
        write_rows(table, numbers(1, 1), mode="upsert", keys=["number"])
    with pytest.raises(LakeSchemaError, match="no column 'nummer' to be a key"):
        write_rows(table, numbers(1), mode="upsert", keys=["nummer"])
    with pytest.raises(LakeError, match="needs the columns of the key"):
        write_rows(table, numbers(1), mode="upsert")
    with pytest.raises(LakeError, match="not 'appendix'"):
        write_rows(table, numbers(1), mode="appendix")
    assert not table.exists()


def test_an_upsert_finds_its_row_in_another_partition(tmp_path: Path) -> None:
    table = LakeTable(tmp_path / "lake")
    for place in ("here", "there"):
        write_rows(
            table,
            pa.table({"id": [1], "place": [place]}),
            mode="upsert",
            keys=["id"],
            partition_by=["place"],
        )
    assert table.read_arrow().to_pylist() == [{"id": 1, "place": "there"}]


def test_vacuum_keeps_what_is_young(tmp_path: Path) -> None:
    table = LakeTable(tmp_path / "lake")
    for number in range(3):
        write_rows(table, numbers(number))
    compact(table)
    orphan = tmp_path / "lake" / "data" / "orphan.parquet"
    orphan.write_bytes(b"x")
    assert vacuum(table, older_than_s=3600).file_count == 0
    assert values(table, 3) == [0, 1, 2]
    assert vacuum(table, older_than_s=0).file_count == 4
    assert values(table) == [0, 1, 2]
    assert not orphan.exists()
    with pytest.raises(LakeDamagedError, match="version 3 was vacuumed"):
        table.read_arrow(version=3)


def test_a_place_that_is_no_file_system_is_refused() -> None:
    with pytest.raises(LakeError, match="'s3://bucket/lake' is on s3"):
        LakeTable("s3://bucket/lake")
    assert LakeTable("file:///tmp/lake").path == "/tmp/lake"


def test_a_manifest_of_the_future_is_refused(tmp_path: Path) -> None:
    table = LakeTable(tmp_path / "lake")
    write_rows(table, numbers(1))
    path = next((tmp_path / "lake" / "_manifest").iterdir())
    path.write_text(json.dumps({**json.loads(path.read_text()), "format": 2}))
    with pytest.raises(LakeDamagedError, match="has format 2"):
        LakeTable(tmp_path / "lake").read_arrow()
