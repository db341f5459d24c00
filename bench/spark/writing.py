"""How fast rows become records of a topic."""

from __future__ import annotations

import itertools
from functools import partial

from bench.broker.results import Goal
from bench.broker.sizes import size_text
from bench.spark.run import Run
from bench.spark.sides import PARTITION_COUNT, Side

SECTION = "Writing"
GOAL = Goal(ratio_min=1.0)
_NUMBER_BYTES = 16

_topic_numbers = itertools.count(1)


def measure(run: Run) -> None:
    for size_bytes, row_count in run.sizes.written_rows.items():
        title = f"{size_text(size_bytes)}, no keys"
        run.attempt(f"{SECTION}: {title}", partial(_compare, run, title, size_bytes, row_count))


def _compare(run: Run, title: str, size_bytes: int, row_count: int) -> None:
    work = partial(_write, run, size_bytes, row_count)
    run.compare_speed(SECTION, title, row_count, work, GOAL)


def _write(run: Run, size_bytes: int, row_count: int, side: Side) -> None:
    with run.server.topic(f"write-{next(_topic_numbers)}", PARTITION_COUNT) as topic:
        # Different values that cost Spark little to make: a number, and a constant behind it.
        rows = run.spark.range(0, row_count, 1, PARTITION_COUNT).selectExpr(
            f"CAST(concat(lpad(CAST(id AS STRING), {_NUMBER_BYTES}, '0'), "
            f"repeat('x', {size_bytes - _NUMBER_BYTES})) AS BINARY) AS value"
        )
        writer = rows.write.format(side.format_name).mode("append").option("topic", topic)
        writer.options(**side.options(run.server.bootstrap)).save()
        with run.server.connect() as client:
            stored = client.record_count(topic, PARTITION_COUNT)
    if stored != row_count:
        raise RuntimeError(f"{side.format_name} wrote {stored} records of {row_count}")
