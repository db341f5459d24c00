"""A writer that is killed, again and again, loses nothing that it committed and repeats nothing."""

import subprocess
import sys
from pathlib import Path

from headwater.pipeline.lake.lake_table import LakeTable
from headwater.pipeline.lake.upkeep.compaction import compact
from headwater.pipeline.lake.verify.verify import verify
from tests.support.spark.lake_process import BATCH_ROWS, WRITER
from tests.support.tiers import rounds

ROOT = Path(__file__).parents[3]
PROGRAM = "tests.support.spark.lake_process"


def test_a_killed_writer_goes_on_where_it_was(tmp_path: Path) -> None:
    path = tmp_path / "lake"
    last_told = -1
    for number in range(rounds(1, 15)):
        process = subprocess.Popen(
            [sys.executable, "-m", PROGRAM, str(path), str(last_told + 1)],
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
        assert process.stdout is not None
        with process.stdout:
            for _ in range(5 + 3 * number):
                last_told = int(process.stdout.readline())
            process.kill()
            last_told = max([last_told, *map(int, process.stdout.read().split())])
        process.wait()
        table = LakeTable(path)
        last = table.snapshot().writers[WRITER]
        # A batch may have been committed and not told of.
        assert last_told <= last <= last_told + 1
        batches = table.read_arrow().column("batch").to_pylist()
        assert sorted(batches) == [each for each in range(last + 1) for _ in range(BATCH_ROWS)]
        assert not [each for each in verify(table, deep=True) if each.is_problem]
        if number % 3 == 2:
            compact(table)
