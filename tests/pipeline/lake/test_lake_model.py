"""A table against a plain list of rows, over random histories with crashes and repetitions."""

import contextlib
import random
from collections import Counter
from typing import NamedTuple

import pyarrow as pa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headwater.pipeline.lake.lake_table import LakeTable
from headwater.pipeline.lake.upkeep.compaction import compact
from headwater.pipeline.lake.upkeep.compaction_plan import EAGER
from headwater.pipeline.lake.upkeep.vacuum import vacuum
from headwater.pipeline.lake.verify.verify import verify
from tests.support.spark.lake_disk import LakeDisk, Stopped
from tests.support.spark.lakes import write_rows
from tests.support.tiers import rounds

Row = tuple[int | None, str, int]


class Step(NamedTuple):
    action: str
    rows: list[Row]
    #: The disk stops after so many operations of this step; then it is done again.
    stop_in: int | None
    seed: int


ROWS = st.lists(
    st.tuples(
        st.one_of(st.none(), st.integers(0, 4)), st.sampled_from(["a", "b=/"]), st.integers(0, 99)
    ),
    max_size=5,
)
STEPS = st.builds(
    Step,
    st.sampled_from(["append", "upsert", "overwrite", "compact", "repeat", "vacuum"]),
    ROWS,
    st.one_of(st.none(), st.integers(0, 40)),
    st.integers(0, 1000),
)


def as_table(rows: list[Row]) -> pa.Table:
    return pa.table(
        {
            "id": pa.array([row[0] for row in rows], pa.int64()),
            "place": pa.array([row[1] for row in rows], pa.string()),
            "count": pa.array([row[2] for row in rows], pa.int64()),
        }
    )


def rows_of(table: LakeTable) -> Counter[Row]:
    found = table.read_arrow() if table.exists() else as_table([])
    return Counter((row["id"], row["place"], row["count"]) for row in found.to_pylist())


def one_of_each_key(rows: list[Row]) -> list[Row]:
    return list({(row[0], row[1]): row for row in rows}.values())


class World:
    def __init__(self) -> None:
        self.disk = LakeDisk()
        self.table = LakeTable("/lake", files=self.disk)
        self.model: Counter[Row] = Counter()
        self.batch_id = -1
        self.last = Step("append", [], None, 0)

    def run(self, step: Step) -> None:
        if step.action == "repeat":
            step = step._replace(action=self.last.action, rows=self.last.rows)
        elif step.action in ("append", "upsert", "overwrite"):
            self.batch_id += 1
            self.last = step
            self.model = self._expected(step)
        if step.stop_in is None:
            self._act(step)
        else:
            self._act_twice(step, step.stop_in)
        assert rows_of(self.table) == self.model

    def _expected(self, step: Step) -> Counter[Row]:
        rows = Counter(step.rows)
        if step.action == "append":
            return self.model + rows
        if step.action == "overwrite":
            return rows
        rows = Counter(one_of_each_key(step.rows))
        keys = {(row[0], row[1]) for row in rows}
        kept = {row: n for row, n in self.model.items() if (row[0], row[1]) not in keys}
        return Counter(kept) + rows

    def _act_twice(self, step: Step, stop_in: int) -> None:
        before = rows_of(self.table)
        self.disk.stop_in(stop_in)
        with contextlib.suppress(Stopped):
            self._act(step)
        generator = random.Random(step.seed)
        self.disk = self.disk.after_power_failure(lambda: generator.random() < 0.5)
        self.table = LakeTable("/lake", files=self.disk)
        assert rows_of(self.table) in (before, self.model)
        self._act(step)

    def _act(self, step: Step) -> None:
        if step.action == "compact":
            if self.table.exists():
                compact(self.table, EAGER)
        elif step.action == "vacuum":
            if self.table.exists():
                vacuum(self.table, older_than_s=0)
        elif self.batch_id >= 0:
            upserts = step.action == "upsert"
            write_rows(
                self.table,
                as_table(one_of_each_key(step.rows) if upserts else step.rows),
                mode=step.action,
                keys=["id", "place"] if upserts else [],
                partition_by=["place"],
                writer="w",
                batch_id=self.batch_id,
            )


@settings(max_examples=rounds(25, 400), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(STEPS, min_size=1, max_size=8))
def test_a_table_is_what_its_writers_made_of_it(steps: list[Step]) -> None:
    world = World()
    for step in steps:
        world.run(step)
    if world.table.exists():
        assert [each for each in verify(world.table, deep=True) if each.is_problem] == []
