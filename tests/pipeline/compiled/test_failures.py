"""What is wrong with a pipeline, as one sentence with its place, from a real Spark."""

from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from headwater.pipeline.compiled.compile_error import PipelineCompileError
from headwater.pipeline.compiled.compiled_pipeline import compile_pipeline
from headwater.pipeline.compiled.spark_failures import failure_sentence
from headwater.pipeline.declared.pipeline_file import load_pipeline
from headwater.pipeline.declared.specs.pipeline import PipelineSpec
from headwater.pipeline.declared.specs.run_mode import Once
from headwater.pipeline.declared.specs.sink import SinkSpec
from headwater.pipeline.lake.batch_write import write_batch
from headwater.pipeline.lake.lake_table import LakeTable
from headwater.testing.running_broker import RunningBroker
from tests.support.spark.pipeline_topics import send_values

BEGIN = """\
name: failing
bootstrap_servers: ${bootstrap}
state_dir: ${folder}/state
variables: {bootstrap: "localhost:1", folder: ""}
sources:
  people: {lake: "${folder}/people"}
steps:
"""
END = """
sinks:
  shown: {from: made, screen: true}
"""


def _spec(folder: Path, text: str, bootstrap: str = "localhost:1") -> PipelineSpec:
    file = folder / "failing.yaml"
    file.write_text(text)
    return load_pipeline(file, {"folder": str(folder), "bootstrap": bootstrap})


def _started(spec: PipelineSpec, spark: SparkSession, said: list[str]) -> None:
    for query in compile_pipeline(spec, spark, said.append).start(Once()):
        query.awaitTermination()


@pytest.fixture
def people(spark: SparkSession, tmp_path: Path) -> None:
    rows = spark.createDataFrame([("ann", 3), ("bo", 4)], "name STRING, age INT")
    write_batch(LakeTable(tmp_path / "people"), rows, writer="test", batch_id=0)


@pytest.mark.usefixtures("people")
def test_what_spark_refuses_names_the_step_and_the_line(
    spark: SparkSession, tmp_path: Path
) -> None:
    step = "  made:\n    sql: |\n      SELECT name,\n             nothing\n      FROM people\n"
    with pytest.raises(PipelineCompileError) as refusal:
        _started(_spec(tmp_path, BEGIN + step + END), spark, [])
    text = str(refusal.value)
    assert text.startswith(f"{tmp_path}/failing.yaml:11: step 'made': ")
    assert "`nothing` cannot be resolved" in text
    assert "\n" not in text


@pytest.mark.usefixtures("people")
def test_a_function_is_told_by_its_name(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "failing_functions.py").write_text(
        "def breaks(people):\n    return {}['rate']\n\n\ndef counts(people):\n    return 7\n"
    )
    for name, part in (("breaks", "KeyError: 'rate'"), ("counts", "returned int, not a DataFrame")):
        step = f"  made: {{python: 'failing_functions:{name}', inputs: [people]}}\n"
        with pytest.raises(PipelineCompileError, match=r"failing.yaml:8: step 'made'") as refusal:
            _started(_spec(tmp_path, BEGIN + step + END), spark, [])
        assert part in str(refusal.value)


@pytest.mark.usefixtures("people")
def test_rows_that_no_stream_feeds_are_written_once_a_run(
    spark: SparkSession, tmp_path: Path
) -> None:
    step = "  made: {sql: SELECT name FROM people WHERE age > 3}\n"
    said: list[str] = []
    _started(_spec(tmp_path, BEGIN + step + END), spark, said)
    assert said == ["shown\nname\n----\nbo\n"]


def test_a_table_format_without_its_jars_is_refused_first(
    spark: SparkSession, tmp_path: Path
) -> None:
    sink = SinkSpec("table", "orders", iceberg="lake.orders", line=4)
    spec = PipelineSpec("p", "b:1", (), (), (sink,), tmp_path, path=Path("p.yaml"))
    with pytest.raises(PipelineCompileError, match=r"p.yaml:4: sink 'table' needs Iceberg"):
        compile_pipeline(spec, spark)


TOPICS = """\
name: failing
bootstrap_servers: ${bootstrap}
state_dir: ${folder}/state
variables: {bootstrap: "localhost:1", folder: ""}
sources:
  events: {topics: events, schema: "id BIGINT NOT NULL"}
steps:
  made: {sql: STEP}
sinks:
  counts: {from: made, lake: "${folder}/counts", mode: complete}
"""


@pytest.mark.full
def test_bad_records_and_changed_pipelines_fail_with_a_sentence(
    spark: SparkSession, tmp_path: Path
) -> None:
    with RunningBroker() as broker:
        broker.create_topic("events")
        send_values(broker.bootstrap, "events", [b'{"id": 1}', b'{"id": 2}'])
        counted = TOPICS.replace("STEP", '"SELECT id, count(*) AS n FROM events GROUP BY id"')
        _started(_spec(tmp_path, counted, broker.bootstrap), spark, [])

        changed = TOPICS.replace(
            "STEP", '"SELECT id % 2 = 0 AS even, sum(id) AS n FROM events GROUP BY id % 2 = 0"'
        )
        send_values(broker.bootstrap, "events", [b'{"id": 3}'])
        spec = _spec(tmp_path, changed, broker.bootstrap)
        with pytest.raises(StreamingQueryException) as failure:
            _started(spec, spark, [])
        sentence = failure_sentence(failure.value, spec, "counts")
        assert sentence.startswith("'counts' cannot go on from its checkpoint in")

        send_values(broker.bootstrap, "events", [b"bad"])
        spec = _spec(tmp_path, counted, broker.bootstrap)
        with pytest.raises(StreamingQueryException) as failure:
            _started(spec, spark, [])
        assert failure_sentence(failure.value, spec, "counts") == (
            "'counts' failed: Source 'events': bad record in topic events, partition 0, offset 3: "
            "the value is not JSON that fits the schema. Give the source a dead_letter topic to "
            "set such records aside"
        )
