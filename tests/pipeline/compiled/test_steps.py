"""Every kind of step in one pipeline over real topics, against plain Python."""

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from headwater import Producer
from headwater.pipeline.compiled.compiled_pipeline import compile_pipeline
from headwater.pipeline.declared.pipeline_file import load_pipeline
from headwater.pipeline.declared.specs.pipeline import PipelineSpec
from headwater.pipeline.declared.specs.run_mode import Backfill, Once, RunMode
from headwater.pipeline.lake.batch_write import write_batch
from headwater.pipeline.lake.lake_table import LakeTable
from headwater.testing.running_broker import RunningBroker
from tests.support.spark.pipeline_rows import (
    BEGIN_S,
    DELAY_S,
    Event,
    joined,
    make_events,
    sessions,
    tumbling,
)
from tests.support.spark.pipeline_topics import read_records, send_values
from tests.support.tiers import full_tier

DEAD = "dlq.steps-events"
PIPELINE = """
name: steps
bootstrap_servers: ${bootstrap}
state_dir: ${folder}/state
variables: {bootstrap: "", folder: ""}
sources:
  events:
    topics: events
    schema: number BIGINT NOT NULL, who STRING, amount BIGINT, time_s BIGINT NOT NULL
    metadata: [offset]
    group: steps-events
    bad_records: dead_letter
    max_records_per_batch: 60
  answers:
    topics: answers
    schema: number BIGINT, who STRING, amount BIGINT, time_s BIGINT
    bad_records: skip
    max_records_per_batch: 60
  people: {lake: "${folder}/people"}
steps:
  timed:
    sql: SELECT *, timestamp_seconds(time_s) AS at FROM events
    watermark: {column: at, delay: 10 seconds}
  answered:
    sql: SELECT number, amount, timestamp_seconds(time_s) AS at FROM answers
    watermark: {column: at, delay: 10 seconds}
  once: {from: timed, deduplicate: [number]}
  tumbling:
    sql: |
      SELECT unix_seconds(window.start) AS begin_s, who, count(*) AS count, sum(amount) AS amount
      FROM timed GROUP BY window(at, '20 seconds'), who
  sliding:
    sql: |
      SELECT unix_seconds(window.start) AS begin_s, who, count(*) AS count, sum(amount) AS amount
      FROM timed GROUP BY window(at, '20 seconds', '10 seconds'), who
  sessions:
    sql: |
      SELECT unix_seconds(session_window.start) AS begin_s,
             unix_seconds(session_window.end) AS end_s, who, count(*) AS count
      FROM timed GROUP BY session_window(at, '15 seconds'), who
  pairs:
    sql: |
      SELECT e.number, e.amount AS asked, a.amount AS given FROM once e JOIN answered a
      ON e.number = a.number AND a.at BETWEEN e.at AND e.at + INTERVAL 5 SECONDS
  named:
    python: pipeline_functions:with_names
    inputs: [events, people]
    arguments: {suffix: "!"}
sinks:
  tumbling: {from: tumbling, lake: "${folder}/tumbling"}
  sliding:
    {from: sliding, lake: "${folder}/sliding", mode: update, upsert: [begin_s, who]}
  sessions: {from: sessions, lake: "${folder}/sessions"}
  pairs: {from: pairs, lake: "${folder}/pairs"}
  named: {from: named, topic: named, key: number}
"""
FUNCTIONS = """
from pyspark.sql import functions as f


def with_names(events, people, suffix):
    shout = f.udf(lambda text: None if text is None else text.upper() + suffix)
    rows = events.join(people, "who", "left")
    return rows.select("number", shout("full_name").alias("name"), "_offset")
"""
BAD = [b"{", b'{"number": 1}', b"", None, b"\xff"]


def _rows(path: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = LakeTable(path).read_arrow().to_pylist()
    return rows


def _totals(path: Path) -> dict[tuple[int, str], tuple[int, int]]:
    rows = _rows(path)
    found = {(row["begin_s"], row["who"]): (row["count"], row["amount"]) for row in rows}
    assert len(found) == len(rows)
    return found


def _sessions(path: Path) -> dict[tuple[int, int, str], int]:
    rows = _rows(path)
    found = {(row["begin_s"], row["end_s"], row["who"]): row["count"] for row in rows}
    assert len(found) == len(rows)
    return found


def _pairs(path: Path) -> list[tuple[int, int, int]]:
    return sorted((row["number"], row["asked"], row["given"]) for row in _rows(path))


@pytest.fixture
def broker() -> Iterator[RunningBroker]:
    with RunningBroker() as running:
        for topic in ("events", DEAD, "answers", "named"):
            # Events carry the time of their calculation, which is long ago for a broker.
            running.create_topic(topic, configs={"retention.ms": "-1"})
        yield running


def _pipeline_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file, beside the functions that it names, in a folder that is forgotten afterwards."""
    monkeypatch.syspath_prepend(str(folder))
    (folder / "pipeline_functions.py").write_text(FUNCTIONS)
    file = folder / "steps.yaml"
    file.write_text(PIPELINE)
    return file


def _run(spec: PipelineSpec, spark: SparkSession, mode: RunMode) -> None:
    queries = compile_pipeline(spec, spark).start(mode)
    try:
        for query in queries:
            query.awaitTermination()
    finally:
        for query in queries:
            query.stop()


def test_every_kind_of_step(
    spark: SparkSession, broker: RunningBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = _pipeline_file(tmp_path, monkeypatch)
    rows = [("ann", "Ann A"), ("bo", "Bo B")]
    people = spark.createDataFrame(rows, "who STRING, full_name STRING")
    write_batch(LakeTable(tmp_path / "people"), people, writer="test", batch_id=0)
    spec = load_pipeline(file, {"bootstrap": broker.bootstrap, "folder": str(tmp_path)})
    # The backfill below has the other steps in the small tier.
    wanted = {"sliding", "pairs", "named", *(("tumbling", "sessions") if full_tier() else ())}
    spec = replace(spec, sinks=tuple(sink for sink in spec.sinks if sink.name in wanted))

    events = make_events(seed=5, count=180, late_from=130)
    answers = [
        replace(event, amount=event.amount + 1, time_s=event.time_s + shift)
        for event, shift in zip(events[::3], [0, 3, 5, 6, 30] * 100, strict=False)
        if not event.is_late
    ]
    send_values(broker.bootstrap, "events", [*(event.value() for event in events[:100]), *BAD])
    if full_tier():
        # The answers are an empty topic then, and the next run goes on from the checkpoints.
        _run(spec, spark, Once())
    send_values(broker.bootstrap, "events", [event.value() for event in events[100:]])
    send_values(broker.bootstrap, "answers", [*(each.value() for each in answers), b"bad"])
    _run(spec, spark, Once())

    in_time = [event for event in events if not event.is_late]
    assert _totals(tmp_path / "sliding") == tumbling(in_time, 20, 10)
    if full_tier():
        _check_closed_windows(tmp_path, in_time)
    assert _pairs(tmp_path / "pairs") == sorted(joined(in_time, answers, 5))
    _check_named(broker, events)
    _check_dead_letters(broker)


def _check_closed_windows(folder: Path, in_time: list[Event]) -> None:
    """A table that is only added to has the windows that nothing can change any more."""
    watermark_s = max(event.time_s for event in in_time) - DELAY_S
    closed = {
        key: total for key, total in tumbling(in_time, 20).items() if key[0] + 20 <= watermark_s
    }
    assert _totals(folder / "tumbling") == closed
    ended = {key: n for key, n in sessions(in_time, 15).items() if key[1] <= watermark_s}
    assert _sessions(folder / "sessions") == ended


def _check_named(broker: RunningBroker, events: list[Event]) -> None:
    names = {"ann": "ANN A!", "bo": "BO B!"}
    found = [
        (record.key, json.loads(record.value)) for record in read_records(broker.bootstrap, "named")
    ]
    offsets = [number for number in range(len(events) + len(BAD)) if not 100 <= number < 105]
    expected = [
        (
            str(event.number).encode(),
            {"number": event.number, "name": names.get(event.who), "_offset": offset},
        )
        for event, offset in zip(events, offsets, strict=True)
    ]
    by_offset: Callable[[tuple[bytes, dict[str, Any]]], int] = lambda row: row[1]["_offset"]  # noqa: E731
    assert sorted(found, key=by_offset) == expected


def _check_dead_letters(broker: RunningBroker) -> None:
    letters = read_records(broker.bootstrap, DEAD)
    assert [letter.value for letter in letters] == BAD
    assert {letter.key for letter in letters} == {b"k"}
    reasons = ["not JSON", "'time_s' is missing", "empty", "no value", "UTF-8"]
    for offset, (letter, reason) in enumerate(zip(letters, reasons, strict=True), start=100):
        headers = dict(letter.headers)
        assert len(headers) == len(letter.headers)
        error = headers["headwater-error"] or b""
        assert reason in error.decode()
        failed = headers["headwater-last-failure"] or b""
        assert abs(int(failed) - time.time() * 1000) < 600_000
        assert int(headers["headwater.dead-letter.timestamp"] or b"") <= int(failed)
        expected = {
            "headwater-origin": f"events-0@{offset}",
            "headwater-attempts": "1",
            "headwater-first-failure": failed.decode(),
            "headwater-error-class": "BadRecord",
            "__dlq.errors.topic": "events",
            "__dlq.errors.partition": "0",
            "__dlq.errors.offset": str(offset),
            "__dlq.errors.group": "steps-events",
            "__dlq.errors.delivery.count": "1",
            "__dlq.errors.message": error.decode(),
            "headwater.dead-letter.reason": error.decode(),
            "headwater.dead-letter.pipeline": "steps",
            "headwater.dead-letter.source": "events",
            "headwater.dead-letter.topic": "events",
            "headwater.dead-letter.partition": "0",
            "headwater.dead-letter.offset": str(offset),
        }
        assert {name: (headers[name] or b"").decode() for name in expected} == expected
        assert len(headers) == len(expected) + 3


def test_a_backfill_is_complete_in_its_range_and_repeats_without_effect(
    spark: SparkSession, broker: RunningBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = ("tumbling", "sessions", "pairs")
    file = _pipeline_file(tmp_path, monkeypatch)
    whole = load_pipeline(file, {"bootstrap": broker.bootstrap, "folder": str(tmp_path)})
    spec = replace(whole, sinks=tuple(each for each in whole.sinks if each.name in wanted))
    events = make_events(seed=6, count=90, late_from=1000)
    with Producer(bootstrap_servers=broker.bootstrap) as producer:
        for event in events:
            producer.send("events", event.value(), timestamp_ms=event.time_s * 1000)
        # Some events come twice, answers do not.
        for event in dict.fromkeys(events):
            answer = replace(event, time_s=event.time_s + 1)
            producer.send("answers", answer.value(), timestamp_ms=event.time_s * 1000)
        producer.send("events", b"bad", timestamp_ms=BEGIN_S * 1000)
    middle_s = sorted(event.time_s for event in events)[45]
    mode = Backfill(BEGIN_S * 1000, middle_s * 1000)
    inside = [event for event in events if BEGIN_S <= event.time_s < middle_s]
    for _ in range(2):
        _run(spec, spark, mode)
        assert _totals(tmp_path / "tumbling") == tumbling(inside, 20)
        assert _sessions(tmp_path / "sessions") == sessions(inside, 15)
        assert _pairs(tmp_path / "pairs") == sorted(
            (event.number, event.amount, event.amount) for event in set(inside)
        )
        assert [letter.value for letter in read_records(broker.bootstrap, DEAD)] == [b"bad"]
