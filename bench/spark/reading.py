"""How fast the records of a topic become rows: into nothing, and into Parquet files."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import partial

from bench.broker.filled_topic import FilledTopic, filled_topic
from bench.broker.results import Goal
from bench.broker.sizes import size_text
from bench.spark.run import Run
from bench.spark.sides import PARTITION_COUNT, SIDES, Side

SECTION = "Reading"
GOAL = Goal(ratio_min=1.0)


def measure(run: Run) -> None:
    for size_bytes, total_bytes in run.sizes.read_bytes.items():
        run.say(f"a topic is filled with records of {size_text(size_bytes)}")
        with filled_topic(
            run.server, f"read-{size_bytes}", PARTITION_COUNT, size_bytes, total_bytes
        ) as topic:
            _check_counts(run, topic)
            for what, work, goal in (
                ("into noop", partial(_into_noop, only_values=False), GOAL),
                ("values only, into noop", partial(_into_noop, only_values=True), None),
                ("into Parquet", _into_parquet, GOAL),
            ):
                title = f"{size_text(size_bytes)}, {what}"
                run.attempt(f"{SECTION}: {title}", partial(_compare, run, topic, title, work, goal))


def _compare(
    run: Run,
    topic: FilledTopic,
    title: str,
    work: Callable[[Run, FilledTopic, Side], None],
    goal: Goal | None,
) -> None:
    run.compare_speed(SECTION, title, topic.record_count, partial(work, run, topic), goal)


def _check_counts(run: Run, topic: FilledTopic) -> None:
    """Both must see all records, or their speed means nothing."""
    for side in SIDES:
        rows = side.rows_of(run.spark, run.server.bootstrap, topic.name)
        if (count := rows.count()) != topic.record_count:
            raise RuntimeError(f"{side.format_name} read {count} records of {topic.record_count}")


def _into_noop(run: Run, topic: FilledTopic, side: Side, *, only_values: bool) -> None:
    rows = side.rows_of(run.spark, run.server.bootstrap, topic.name, only_values=only_values)
    rows.write.format("noop").mode("overwrite").save()


def _into_parquet(run: Run, topic: FilledTopic, side: Side) -> None:
    target = run.directory / "parquet"
    rows = side.rows_of(run.spark, run.server.bootstrap, topic.name)
    rows.write.mode("overwrite").parquet(str(target))
    shutil.rmtree(target)
