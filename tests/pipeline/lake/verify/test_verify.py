"""Every kind of damage that `verify` is for, planted, and found."""

import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

from headwater import Producer
from headwater.pipeline.lake.errors import LakeMissingError
from headwater.pipeline.lake.lake_table import LakeTable
from headwater.pipeline.lake.upkeep.compaction import compact
from headwater.pipeline.lake.verify.verify import verify
from headwater.testing.running_broker import RunningBroker
from tests.support.spark.lakes import (
    archive,
    archive_numbers,
    record,
    write_record_files,
    write_rows,
)

parquet: Any = pyarrow.parquet
Damage = Callable[["Archive"], None]


class Archive:
    """An archive of two partitions in three commits, to be damaged."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.table = LakeTable(path)
        for batch_id in range(3):
            archive_numbers(self.table, batch_id, batch_id * 100, batch_id * 100 + 100)

    def file(self, number: int = 0) -> Path:
        return self.path / self.table.files()[number].path

    def manifest(self, version: int) -> Path:
        return self.path / "_manifest" / f"{version:020d}.json"

    def change_manifest(self, version: int, change: Callable[[dict[str, Any]], None]) -> None:
        value = json.loads(self.manifest(version).read_text())
        change(value)
        self.manifest(version).write_text(json.dumps(value))

    def problems(self, **options: Any) -> list[str]:
        return [
            each.sentence for each in verify(LakeTable(self.path), **options) if each.is_problem
        ]


@pytest.fixture
def sound(tmp_path: Path) -> Archive:
    return Archive(tmp_path / "lake")


def remove_a_file(lake: Archive) -> None:
    lake.file().unlink()


def truncate_a_file(lake: Archive) -> None:
    lake.file().write_bytes(lake.file().read_bytes()[:-20])


def break_a_footer(lake: Archive) -> None:
    data = lake.file().read_bytes()
    lake.file().write_bytes(data[:-4] + b"XXXX")


def name_a_file_twice(lake: Archive) -> None:
    lake.change_manifest(2, lambda value: value["added"].append(value["added"][0]))


def name_a_file_twice_in_a_full_manifest(lake: Archive) -> None:
    def change(value: dict[str, Any]) -> None:
        value["table"]["files"].append(value["table"]["files"][0])

    lake.change_manifest(1, change)


def copy_a_file(lake: Archive) -> None:
    """The same records under another name."""
    first = lake.table.files()[0]
    other = first.path.replace(".parquet", "-copy.parquet")
    shutil.copy(lake.path / first.path, lake.path / other)
    lake.change_manifest(3, lambda value: value["added"].append({**first.to_json(), "path": other}))


def leave_a_gap(lake: Archive) -> None:
    archive_numbers(lake.table, 3, 350, 400)


def cover_offsets_twice(lake: Archive) -> None:
    def change(value: dict[str, Any]) -> None:
        value["ranges"][0]["start"] = 150

    lake.change_manifest(3, change)


def write_records_of(lake: Archive, rows: list[Mapping[str, Any]]) -> None:
    """In place of the first file, under its name and with its size in the manifest."""
    target = lake.table.files()[0]
    [written] = write_record_files(lake.table, rows)
    (lake.path / written.path).rename(lake.path / target.path)
    value = {**target.to_json(), "size_bytes": written.size_bytes, "row_count": written.row_count}

    def change(manifest: dict[str, Any]) -> None:
        for files in (manifest["added"], manifest["table"]["files"]):
            files[0] = value

    lake.change_manifest(1, change)


def put_in_rows_of_another_partition(lake: Archive) -> None:
    write_records_of(lake, [record(7, offset) for offset in range(100)])


def put_in_rows_of_other_offsets(lake: Archive) -> None:
    write_records_of(lake, [record(0, offset) for offset in range(500, 600)])


def lose_rows(lake: Archive) -> None:
    write_records_of(lake, [record(0, offset) for offset in range(100) if offset != 50])


def put_in_rows_of_another_day(lake: Archive) -> None:
    times = {offset: record(0, offset + 5000)["timestamp"] // 1000 for offset in range(100)}
    write_records_of(lake, [record(0, offset, time_ms=times[offset]) for offset in range(100)])


def change_the_count(lake: Archive) -> None:
    def change(value: dict[str, Any]) -> None:
        value["added"][0]["row_count"] = 99

    lake.change_manifest(2, change)


def forget_a_file(lake: Archive) -> None:
    lake.change_manifest(2, lambda value: value["added"].pop())


def remove_a_manifest(lake: Archive) -> None:
    lake.manifest(2).unlink()


def damage_a_manifest(lake: Archive) -> None:
    lake.manifest(2).write_bytes(lake.manifest(2).read_bytes()[:-30])


def list_another_table(lake: Archive) -> None:
    for batch_id in range(3, 33):
        archive_numbers(lake.table, batch_id, batch_id * 100, batch_id * 100 + 100)
    lake.change_manifest(33, lambda value: value["table"]["writers"].clear())


DAMAGES: dict[str, tuple[Damage, str]] = {
    "a missing file": (remove_a_file, "is missing, with 100 rows."),
    "a truncated file": (truncate_a_file, "bytes, and its manifest says"),
    "a broken footer": (break_a_footer, "cannot be read: "),
    "a file named twice": (name_a_file_twice, "Manifest 2 adds"),
    "a file listed twice": (name_a_file_twice_in_a_full_manifest, "Manifest 1 lists"),
    "records twice": (copy_a_file, "orders-0 has 100 records twice, the first at offset 0, in"),
    "a gap": (leave_a_gap, "orders-1 has a gap: offsets 300 to 349 were never archived."),
    "an overlap": (cover_offsets_twice, "Offsets 150 to 199 of orders-0 are in the table already"),
    "rows of another partition": (
        put_in_rows_of_another_partition,
        "has 100 records of partitions other than orders-0.",
    ),
    "rows that no commit covers": (
        put_in_rows_of_other_offsets,
        "orders-0 has 100 records that no commit covered, the first at offset 500",
    ),
    "offsets that the manifest does not have": (
        put_in_rows_of_other_offsets,
        "has offsets 500 to 599, and its manifest says 0 to 99.",
    ),
    "rows that are lost": (
        lose_rows,
        "orders-0 has 299 records at offsets 0 to 299, and 300 were archived there.",
    ),
    "rows of another date": (put_in_rows_of_another_day, "has records of another date."),
    "a wrong count": (change_the_count, "has 100 rows, and its manifest says 99."),
    "a forgotten file": (
        forget_a_file,
        "orders-1 has 200 records at offsets 0 to 299, and 300 were archived there.",
    ),
    "a missing manifest": (remove_a_manifest, "Manifest 3 follows version 1"),
    "a damaged manifest": (damage_a_manifest, "Manifest 2 cannot be read"),
    "a full manifest of another table": (list_another_table, "Manifest 33 does not list"),
}


@pytest.mark.parametrize(("damage", "sentence"), DAMAGES.values(), ids=DAMAGES)
def test_damage_is_found(sound: Archive, damage: Damage, sentence: str) -> None:
    assert sound.problems() == []
    damage(sound)
    assert [each for each in sound.problems() if sentence in each], sound.problems()


def test_a_flipped_bit_is_found_by_checksums(sound: Archive) -> None:
    path = sound.file()
    metadata = parquet.ParquetFile(path).metadata
    column = next(
        metadata.row_group(0).column(number)
        for number in range(metadata.num_columns)
        if metadata.row_group(0).column(number).path_in_schema == "value"
    )
    data = bytearray(path.read_bytes())
    data[column.data_page_offset + column.total_compressed_size // 2] ^= 1
    path.write_bytes(data)
    assert sound.problems() == []
    assert [each for each in sound.problems(deep=True) if "cannot be read" in each]


def test_orphans_are_worth_a_note_and_no_more(sound: Archive) -> None:
    (sound.path / "data" / "left.parquet").write_bytes(b"x")
    [finding] = verify(sound.table)
    assert not finding.is_problem
    assert "data/left.parquet" in finding.sentence


def test_a_compacted_archive_is_as_sound(sound: Archive) -> None:
    file_count = len(sound.table.files())
    rows = sound.table.read_arrow().sort_by([("partition", "ascending"), ("offset", "ascending")])
    report = compact(sound.table)
    assert len(sound.table.files()) == 2 < file_count == report.removed_count
    assert sound.problems(deep=True) == []
    assert (
        sound.table.read_arrow()
        .sort_by([("partition", "ascending"), ("offset", "ascending")])
        .equals(rows)
    )


def test_a_table_of_rows_is_verified_too(tmp_path: Path) -> None:
    table = LakeTable(tmp_path / "lake")
    with pytest.raises(LakeMissingError, match="There is no lake table at"):
        verify(table)
    write_rows(table, pa.table({"number": [1, 2]}))
    assert verify(table, deep=True) == []


@pytest.fixture(scope="module")
def broker() -> Iterator[RunningBroker]:
    with RunningBroker(settings={"log.retention.ms": "-1"}) as running:
        yield running


def test_an_archive_is_held_against_the_cluster(broker: RunningBroker, tmp_path: Path) -> None:
    topic = broker.create_topic(partitions=2)
    rows = [record(number, offset, topic=topic) for number in (0, 1) for offset in range(300)]
    with Producer(bootstrap_servers=broker.bootstrap) as producer:
        for row in rows:
            producer.send(
                topic,
                row["value"],
                row["key"],
                partition=row["partition"],
                timestamp_ms=row["timestamp"] // 1000,
            )
    ends = {(topic, 0): 300, (topic, 1): 300}

    def problems_of(name: str, archived: list[dict[str, Any]]) -> list[str]:
        table = LakeTable(tmp_path / name)
        start = dict.fromkeys(ends, 0)
        archive(table, archived, before=start, after=ends, batch_id=0)
        found = verify(table, bootstrap_servers=broker.bootstrap)
        return [each.sentence for each in found if each.is_problem]

    assert problems_of("whole", rows) == []
    assert problems_of("lacking", [row for row in rows if row["offset"] not in (7, 9)]) == [
        f"{topic}-0 has 2 records that the archive lacks, the first at offset 7.",
        f"{topic}-1 has 2 records that the archive lacks, the first at offset 7.",
    ]
    changed = [{**row, "value": b"?"} if row["offset"] == 20 else row for row in rows[:300]]
    assert problems_of("other", [*changed, *rows[300:]]) == [
        f"{topic}-0 has 1 record that the archive has with another key or value, the first at "
        "offset 20."
    ]
