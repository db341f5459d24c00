"""A table on a disk that stops at every single operation: the old version is there, or the new."""

import random
from collections.abc import Callable
from typing import Any, NamedTuple

import pyarrow as pa
import pytest

from headwater.pipeline.lake.lake_table import LakeTable
from headwater.pipeline.lake.upkeep.compaction import compact
from headwater.pipeline.lake.upkeep.vacuum import vacuum
from headwater.pipeline.lake.verify.finding import Finding
from headwater.pipeline.lake.verify.verify import verify
from tests.support.spark.lake_disk import LakeDisk, Stopped
from tests.support.spark.lakes import archive_numbers, sorted_rows, write_rows
from tests.support.tiers import rounds

ROOT = "/tables/sales"
RANDOM_KEEPS = rounds(1, 8)


def sales(*pairs: tuple[int, str]) -> pa.Table:
    return pa.table({"id": [each[0] for each in pairs], "what": [each[1] for each in pairs]})


def three_batches(table: LakeTable) -> None:
    for batch_id in range(3):
        rows = sales((batch_id, "old"), (10 + batch_id, "old"))
        write_rows(table, rows, partition_by=["what"], writer="w", batch_id=batch_id)


def write(mode: str) -> Callable[[LakeTable], object]:
    def act(table: LakeTable) -> object:
        return write_rows(
            table,
            sales((1, "old"), (2, "new"), (3, "new")),
            mode=mode,
            keys=["id"],
            partition_by=["what"],
            writer="w",
            batch_id=3,
        )

    return act


def archived(table: LakeTable) -> None:
    """Around midnight, so that there are files of two dates."""
    archive_numbers(table, 0, 1430, 1436, partitions=[0])
    archive_numbers(table, 1, 1436, 1450, partitions=[0])


def compacted_batches(table: LakeTable) -> None:
    three_batches(table)
    compact(table)


class Case(NamedTuple):
    prepare: Callable[[LakeTable], object]
    act: Callable[[LakeTable], object]


CASES = {
    "the first commit": Case(lambda table: None, write("append")),
    "append": Case(three_batches, write("append")),
    "upsert": Case(three_batches, write("upsert")),
    "overwrite": Case(three_batches, write("overwrite")),
    "compact": Case(three_batches, compact),
    "vacuum": Case(compacted_batches, lambda table: vacuum(table, older_than_s=0)),
    "archive": Case(archived, lambda table: archive_numbers(table, 2, 1450, 1453, partitions=[0])),
    "compact an archive": Case(archived, compact),
}


def content(table: LakeTable) -> list[dict[str, Any]]:
    return sorted_rows(table.read_arrow()) if table.exists() else []


def problems(table: LakeTable) -> list[Finding]:
    return [each for each in verify(table, deep=True) if each.is_problem] if table.exists() else []


def keeps() -> list[tuple[str, Callable[[], bool]]]:
    def seeded_keep(seed: int) -> Callable[[], bool]:
        generator = random.Random(seed)
        return lambda: generator.random() < 0.5

    seeded = [(f"seed {seed}", seeded_keep(seed)) for seed in range(RANDOM_KEEPS)]
    return [("nothing more", lambda: False), ("everything", lambda: True), *seeded]


def prepared(case: Case) -> LakeTable:
    table = LakeTable(ROOT, files=LakeDisk())
    case.prepare(table)
    return table


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_whatever_operation_is_the_last_a_version_is_whole(case: Case) -> None:
    whole = prepared(case)
    before = content(whole)
    count = disk_of(whole).operation_count
    case.act(whole)
    count = disk_of(whole).operation_count - count
    after = content(whole)
    assert count >= 3
    seen = set()
    for stop_in in range(count):
        table = prepared(case)
        disk = disk_of(table)
        disk.stop_in(stop_in)
        with pytest.raises(Stopped):
            case.act(table)
        for name, keep in keeps():
            left = disk.after_power_failure(keep)
            found = LakeTable(ROOT, files=left)
            where = f"stopped after {stop_in} of {count} operations, {name} kept"
            rows = content(found)
            assert rows in (before, after), where
            seen.add("old" if rows == before else "new")
            assert not problems(found), where
            # The same again, by whoever comes next, ends where it should have ended.
            case.act(found)
            assert content(found) == after, where
            assert not problems(found), where
    if before != after:
        assert seen == {"old", "new"}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_what_was_committed_survives_a_power_failure(case: Case) -> None:
    table = prepared(case)
    case.act(table)
    left = LakeTable(ROOT, files=disk_of(table).after_power_failure(lambda: False))
    assert content(left) == content(table)
    assert not problems(left)
    assert len(content(left)) > 0


def disk_of(table: LakeTable) -> LakeDisk:
    assert isinstance(table.disk, LakeDisk)
    return table.disk
