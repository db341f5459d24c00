"""A pipeline's file becomes its spec, or every problem of it is told with its place."""

import pickle
from collections.abc import Sequence
from pathlib import Path

import pytest

from headwater.pipeline.declared.pipeline_file import load_pipeline
from headwater.pipeline.declared.problems import PipelineFileError
from headwater.pipeline.declared.query_fault import QueryFault
from headwater.pipeline.declared.specs.pipeline import PipelineSpec
from headwater.pipeline.declared.specs.run_mode import Backfill, Continuous, Once
from headwater.pipeline.declared.specs.sink import SinkSpec
from headwater.pipeline.declared.specs.source import SourceSpec, Watermark
from headwater.pipeline.declared.specs.step import StepSpec

WHOLE = """\
name: revenue
description: Revenue by minute.
variables: {topic: orders, other: , rack: "${env:SECRET}"}
bootstrap_servers: b1:9092,b2:9092
kafka: {client.id: revenue, client.rack: "${rack}"}
spark: {spark.sql.shuffle.partitions: 8}
state_dir: /var/lib/pipelines
trigger: 30 seconds
sources:
  orders:
    topic: ${topic}
    schema: id STRING NOT NULL, amount DOUBLE, at TIMESTAMP
    metadata: [key, timestamp]
    watermark: {column: at, delay: 10 minutes}
    dead_letter: ${topic}-rejected
    starting_offsets: {orders: {0: 23, 1: 42}}
    max_records_per_batch: 10_000
    group: billing
    options: {failOnDataLoss: false}
  records: {topics: "a, b", metadata: [headers], starting_offsets: 2026-01-01}
  lines: {pattern: x-.*, format: csv, schema: "a INT", format_options: {sep: ;}, bad_records: skip}
  events:
    topics: [e1]
    format: avro
    confluent_header: true
    schema: {type: record, name: event, fields: [{name: id, type: string}]}
  customers: {lake: ./lake/customers}
steps:
  big: SELECT * FROM Orders WHERE amount > 1
  single: {deduplicate: [id], from: big}
  sums:
    sql: |
      WITH w AS (SELECT * FROM single)
      SELECT window.start AS minute, sum(amount) AS total
      FROM w JOIN customers USING (id) GROUP BY window(at, '1 minute');
    watermark: {column: minute, delay: 1 hour}
  shaped: {python: "json:dumps", inputs: [sums], arguments: {indent: 2}}
sinks:
  out:
    topic: revenue
    key: minute
    headers: {trace: id}
    exactly_once: yes
    mode: update
    trigger: 0 seconds
  table: {from: sums, lake: ./lake/revenue, upsert: minute, partition_by: [minute]}
  raw: {from: records, archive: ./lake/archive}
  seen: {from: big, screen: true, rows: 5}
"""


def load(directory: Path, text: str, **variables: str) -> PipelineSpec:
    path = directory / "pipe.yaml"
    path.write_text(text)
    return load_pipeline(path, variables, environment={"SECRET": "s3cret"})


def problems(directory: Path, text: str, **variables: str) -> list[str]:
    with pytest.raises(PipelineFileError) as error:
        load(directory, text, **variables)
    prefix = f"{directory / 'pipe.yaml'}:"
    lines = str(error.value).splitlines()
    assert lines == error.value.lines() and all(line.startswith(prefix) for line in lines)
    return [line.removeprefix(prefix).strip() for line in lines]


@pytest.mark.parametrize(
    ("fields", "topic"),
    [
        ("", None),
        (", bad_records: skip", None),
        (", dead_letter: orders-rejected", "orders-rejected"),
        (", bad_records: dead_letter", "dlq.revenue"),
        (", bad_records: dead_letter, group: billing", "dlq.billing"),
        (", bad_records: dead_letter, dead_letter: orders-rejected", "orders-rejected"),
    ],
)
def test_where_bad_records_go(tmp_path: Path, fields: str, topic: str | None) -> None:
    source = f"{{topic: orders, schema: a INT{fields}}}"
    spec = load(tmp_path, f"name: revenue\nsources: {{s: {source}}}\nsinks: {{t: {{topic: t}}}}")
    [found] = spec.sources
    assert found.has_dead_letters == (topic is not None)
    if topic is not None:
        assert spec.dead_letter_topic(found) == topic


def test_a_whole_file(tmp_path: Path) -> None:
    spec = load(tmp_path, WHOLE)
    assert (spec.name, spec.description) == ("revenue", "Revenue by minute.")
    assert spec.bootstrap_servers == "b1:9092,b2:9092"
    assert spec.kafka == {"client.id": "revenue", "client.rack": "s3cret"}
    assert spec.spark == {"spark.sql.shuffle.partitions": "8"}
    assert spec.state_directory == Path("/var/lib/pipelines/revenue")
    assert (spec.path, spec.directory) == (tmp_path / "pipe.yaml", tmp_path)
    orders, records, lines, events, customers = spec.sources
    assert orders == SourceSpec(
        "orders",
        topics=("orders",),
        schema="id STRING NOT NULL, amount DOUBLE, at TIMESTAMP",
        metadata=("key", "timestamp"),
        watermark=Watermark("at", 600_000),
        dead_letter="orders-rejected",
        starting_offsets='{"orders": {"0": 23, "1": 42}}',
        max_records_per_batch=10_000,
        group="billing",
        options={"failOnDataLoss": "false"},
        line=10,
    )
    assert records == SourceSpec(
        "records",
        topics=("a", "b"),
        format="raw",
        metadata=("headers",),
        starting_timestamp_ms=1_767_225_600_000,
        line=20,
    )
    assert (lines.pattern, lines.format, lines.bad_records) == ("x-.*", "csv", "skip")
    assert lines.format_options == {"sep": ";"}
    assert events.format == "avro" and '"name": "event"' in events.avro_schema
    assert events.confluent_header and not events.schema
    assert customers.is_lake and not customers.streaming
    assert [spec.group(source) for source in spec.sources[:2]] == ["billing", "revenue"]


def test_the_steps_of_a_whole_file(tmp_path: Path) -> None:
    big, single, sums, shaped = load(tmp_path, WHOLE).steps
    assert big == StepSpec(
        "big",
        sql="SELECT * FROM Orders WHERE amount > 1",
        inputs=("orders",),
        line=29,
        sql_line=29,
    )
    assert single == StepSpec("single", deduplicate=("id",), inputs=("big",), line=30)
    assert sums.inputs == ("single", "customers")
    assert sums.sql.startswith("WITH w") and sums.sql.endswith("'1 minute')")
    assert (sums.line, sums.sql_line) == (31, 33)
    assert sums.watermark == Watermark("minute", 3_600_000)
    assert shaped == StepSpec(
        "shaped", python="json:dumps", inputs=("sums",), arguments={"indent": 2}, line=37
    )


def test_the_sinks_of_a_whole_file(tmp_path: Path) -> None:
    out, table, raw, seen = load(tmp_path, WHOLE).sinks
    assert out == SinkSpec(
        "out",
        "shaped",
        topic="revenue",
        key="minute",
        headers={"trace": "id"},
        exactly_once=True,
        mode="update",
        trigger_ms=0,
        line=39,
    )
    assert (table.kind, table.mode, table.upsert) == ("lake", "update", ("minute",))
    assert (table.partition_by, table.trigger_ms) == (("minute",), 30_000)
    assert (raw.kind, raw.archive, raw.input) == ("archive", "./lake/archive", "records")
    assert (seen.kind, seen.rows, seen.input) == ("screen", 5, "big")


SHORT = "sources: {orders: {topic: orders}}\nsinks: {copy: {topic: copy, format: raw}}\n"


def test_a_short_file_has_defaults(tmp_path: Path) -> None:
    spec = load(tmp_path, SHORT)
    assert (spec.name, spec.bootstrap_servers) == ("pipe", "127.0.0.1:9092")
    assert spec.state_directory == Path("headwater-pipelines/pipe")
    [source], [sink] = spec.sources, spec.sinks
    assert (source.format, source.starting_offsets, source.streaming) == ("raw", "earliest", True)
    assert (sink.input, sink.mode, sink.trigger_ms) == ("orders", "append", 0)
    table = load(tmp_path, SHORT.replace("topic: copy, format: raw", "lake: x")).sinks[0]
    assert table.trigger_ms == 10_000


def test_keywords_and_the_environment_win(tmp_path: Path) -> None:
    path = tmp_path / "pipe.yaml"
    path.write_text(SHORT)
    there = {"HEADWATER_BOOTSTRAP_SERVER": "env:1"}
    assert load_pipeline(path, environment=there).bootstrap_servers == "env:1"
    spec = load_pipeline(
        path, environment=there, bootstrap_servers="arg:1", state_directory=tmp_path / "state"
    )
    assert (spec.bootstrap_servers, spec.state_directory) == ("arg:1", tmp_path / "state")


def test_checkpoints_are_one_for_a_query_and_a_backfill(tmp_path: Path) -> None:
    spec = load(tmp_path, SHORT + f"state_dir: {tmp_path}\n")
    assert spec.checkpoint_location("copy", Once()) == f"{tmp_path}/pipe/checkpoints/copy"
    assert spec.checkpoint_location("copy", Continuous()) == f"{tmp_path}/pipe/checkpoints/copy"
    backfill = f"{tmp_path}/pipe/backfill/1-2/checkpoints/copy"
    assert spec.checkpoint_location("copy", Backfill(1, 2)) == backfill
    there = load(tmp_path, SHORT + "checkpoints: s3a://b/c/\n")
    assert there.checkpoint_location("copy", Once()) == "s3a://b/c/checkpoints/copy"


def test_a_file_without_sources(tmp_path: Path) -> None:
    spec = load(
        tmp_path,
        "steps: {made: {python: 'json:dumps', inputs: [], arguments: {obj: 1}}}\n"
        "sinks: {out: {screen: true}}\n",
    )
    assert spec.sources == () and spec.steps[0].inputs == ()


def test_schema_files(tmp_path: Path) -> None:
    (tmp_path / "order.ddl").write_text("id STRING,\n  at TIMESTAMP\n")
    (tmp_path / "order.avsc").write_text('{"type": "record", "name": "o", "fields": []}')
    text = SHORT.replace("topic: orders", "topic: orders, schema_file: order.ddl")
    assert load(tmp_path, text).sources[0].schema == "id STRING, at TIMESTAMP"
    text = SHORT.replace("topic: orders", "topic: orders, format: avro, schema_file: order.avsc")
    assert '"record"' in load(tmp_path, text).sources[0].avro_schema
    text = SHORT.replace("topic: orders", "topic: orders, schema_file: missing.ddl")
    assert problems(tmp_path, text) == [
        f"1:48: {tmp_path / 'missing.ddl'}: No such file or directory."
    ]


def test_a_schema_may_be_a_mapping(tmp_path: Path) -> None:
    text = SHORT.replace("topic: orders", "topic: orders, schema: {id: STRING, amount: DOUBLE}")
    assert load(tmp_path, text).sources[0].schema == "`id` STRING, `amount` DOUBLE"


def source(fields: str) -> str:
    return f"sources: {{s: {{{fields}}}}}\nsinks: {{out: {{screen: true}}}}\n"


def step(fields: str) -> str:
    return (
        f"sources: {{s: {{topic: t}}}}\nsteps: {{a: {fields}}}\nsinks: {{out: {{screen: true}}}}\n"
    )


def sink(fields: str) -> str:
    return f"sources: {{s: {{topic: t}}}}\nsinks: {{out: {{{fields}}}}}\n"


PROBLEMS = {
    # The file as a whole.
    "- a\n": ["1:1: the file must be a mapping with fields, not a list."],
    "hello\n": ["1:1: the file must be a mapping with fields, not a string."],
    "name: x\n": [
        "1:1: the file needs the field 'sinks'.",
        "1:1: the file has neither sources nor steps.",
    ],
    SHORT + "sourcs: {}\n": ["3:1: the file has no field 'sourcs': did you mean 'sources'?"],
    SHORT + "name: a/b\n": [
        "3:7: 'a/b' is not a name for a pipeline: use letters, digits, '.', '_' and '-'; give it "
        "one with 'name'."
    ],
    SHORT + "kafka: {bootstrap.servers: x}\n": [
        "3:9: 'kafka' cannot have 'bootstrap.servers': write 'bootstrap_servers'."
    ],
    SHORT + "kafka: {linger.sm: 5, kafka.acks: all, fetch.min.bytes: 1, acks: all}\n": [
        "3:9: 'kafka': clients have no setting 'linger.sm': did you mean 'linger.ms'?",
        "3:23: 'kafka' has 'kafka.acks': leave out the prefix, as in 'acks'.",
    ],
    SHORT + "spark: {a: [1]}\n": ["3:12: 'a' in 'spark' must be a string, not a list."],
    SHORT + "trigger: fast\n": [
        "3:10: 'trigger': 'fast' is not a duration; write it like '10 seconds'."
    ],
    "sources: 5\nsinks: {}\n": [
        "1:1: the file has neither sources nor steps.",
        "1:10: 'sources' must be a mapping, and has at least one entry.",
        "2:8: 'sinks' must be a mapping, and has at least one entry.",
    ],
    # Sources.
    source("topic: t, pattern: x"): ["1:25: source 's' cannot have both 'topic' and 'pattern'."],
    source("format: json"): [
        "1:11: source 's' needs one of 'topic', 'topics', 'pattern' or 'lake'.",
        "1:23: source 's' has format 'json', which needs a 'schema'.",
    ],
    source("topic: a b"): [
        "1:22: 'a b' is not a name for a topic: use up to 249 letters, digits, '.', '_' and '-'."
    ],
    source("topic:"): ["1:15: 'topic' of source 's' has no value."],
    source("topic: t, format: jsn"): ["1:33: 'format' cannot be 'jsn': did you mean 'json'?"],
    source("topic: t, schema: id STRIN"): [
        "1:36: the schema is wrong: 'STRIN' is not a type: did you mean 'STRING'?"
    ],
    source("topic: t, schema: id STRING, watermark: {column: it, delay: 1 day}"): [
        "1:64: source 's' has no column 'it'; there is 'id'."
    ],
    source("topic: t, schema: id STRING, watermark: {column: id, delay: 1 day}"): [
        "1:64: column 'id' is STRING, but a watermark needs a TIMESTAMP."
    ],
    source("topic: t, watermark: {column: timestamp}"): [
        "1:25: the watermark of source 's' needs the field 'delay'."
    ],
    source("topic: t, watermark: at"): [
        "1:36: 'watermark' must be a mapping, and has at least one entry."
    ],
    source("topic: t, dead_letter: d"): [
        "1:25: source 's' has format 'raw', where nothing is decoded: 'dead_letter' has no use."
    ],
    source("topic: t, schema: a INT, dead_letter: d, bad_records: skip"): [
        "1:56: source 's' cannot have both 'dead_letter' and 'bad_records: skip'."
    ],
    source("topic: t, bad_records: dead_letter"): [
        "1:25: source 's' has format 'raw', where nothing is decoded: 'bad_records' has no use."
    ],
    source("topic: t, schema: a INT, bad_records: dead_leter"): [
        "1:53: 'bad_records' cannot be 'dead_leter': did you mean 'dead_letter'?"
    ],
    source("topic: t, schema: a INT, dead_letter: t"): [
        "1:53: source 's' reads the topic 't' itself: its dead letters would come back to it."
    ],
    source("pattern: d.*, schema: a INT, group: g, bad_records: dead_letter"): [
        "1:51: source 's' reads the topic 'dlq.g' itself: its dead letters would come back to it."
    ],
    source("pattern: .*, schema: a INT, bad_records: dead_letter"): [
        "1:56: source 's' reads the topic 'dlq.pipe' itself: its dead letters would come back to "
        "it."
    ],
    source("topic: t, schema: a INT, group: a b, bad_records: dead_letter"): [
        "1:47: source 's' has bad records that no topic can be named for: 'dlq.a b', after the "
        "group, is not a name for one; give it a 'dead_letter'."
    ],
    source("topic: t, schema: a INT, metadata: [of, key]"): [
        "1:50: 'metadata' of source 's' cannot have 'of'; there are 'key', 'topic', 'partition', "
        "'offset', 'timestamp' and 'headers'."
    ],
    source("lake: x, streaming: true"): [
        "1:35: source 's' is a lake table, which cannot be streamed."
    ],
    source("lake: x, format: raw"): [
        "1:24: 'format' of source 's' is only for 'topic', 'topics' or 'pattern'."
    ],
    source("topic: t, starting_offsets: soon"): [
        "1:43: 'starting_offsets' cannot be 'soon': 'earliest', 'latest', 'group', a time, or "
        "offsets by topic and partition."
    ],
    source("topic: t, starting_offsets: {t: 5}"): [
        "1:43: 'starting_offsets' must be offsets by topic and partition: {orders: {0: 23}}."
    ],
    source("topic: t, max_records_per_batch: many"): [
        "1:48: 'max_records_per_batch' must be a whole number above 0, not 'many'."
    ],
    source("topic: t, format: avro, schema: id STRING"): [
        '1:47: an Avro schema is JSON, such as {"type": "record", ...}.'
    ],
    source('topic: t, format: avro, schema: \'{"type": "int"}\''): [
        "1:47: the Avro schema must be a record, whose fields become the columns."
    ],
    source("topic: t, options: {subscribe: x}"): [
        "1:35: 'options' of source 's' cannot have 'subscribe': the field 'topics' is for it."
    ],
    source("topic: t, options: {failOnDataLos: false, kafka.fetch.min.byte: 5}"): [
        "1:35: 'options' of source 's': unknown option 'failOnDataLos': did you mean "
        "'failOnDataLoss'?",
        "1:57: 'options' of source 's': clients have no setting 'fetch.min.byte': did you mean "
        "'fetch.min.bytes'?",
    ],
    "sources: {my-topic: {topic: t}}\nsinks: {out: {screen: true}}\n": [
        "1:11: 'my-topic' is not a name for a source: use letters, digits and '_', as it is a "
        "table in SQL."
    ],
    # Steps.
    step("{sql: SELECT 1, deduplicate: x}"): [
        "2:28: step 'a' cannot have both 'sql' and 'deduplicate'."
    ],
    step("{}"): ["2:9: step 'a' needs one of 'sql', 'python' or 'deduplicate'."],
    step("SELECT * FROM t"): [
        "2:26: step 'a' reads 't', which is not a source or step before it; there is 's'."
    ],
    step("SELECT * FROM a"): ["2:26: step 'a' reads itself."],
    step("SELECT (1"): ["2:19: the query is wrong: '(' has no ')'."],
    step("{python: 'nowhere_at_all:f', inputs: [x]}"): [
        "2:21: there is no module 'nowhere_at_all', neither in {directory} nor where Python looks.",
        "2:50: step 'a' reads 'x', which is not a source or step before it; there is 's'.",
    ],
    step("{deduplicate: [x], from: q}"): [
        "2:37: step 'a' reads 'q', which is not a source or step before it; there is 's'."
    ],
    step("{deduplicate: [x, x]}"): ["2:26: 'deduplicate' has 'x' twice."],
    step("{sql: SELECT 1, inputs: [s]}"): ["2:28: 'inputs' of step 'a' is only for 'python'."],
    "sources: {s: {topic: t}}\nsteps: {a: SELECT * FROM b, b: SELECT * FROM a, c: 'SELECT * FROM "
    "d', d: SELECT 1}\nsinks: {out: {screen: true}}\n": [
        "2:26: step 'a' reads 'b', which in turn reads 'a': a cycle.",
        "2:67: step 'c' reads 'd', which comes after it: move 'd' before 'c'.",
    ],
    "sources: {s: {topic: t}}\nsteps: {S: SELECT 1}\nsinks: {out: {screen: true}}\n": [
        "2:9: the name 'S' is used twice."
    ],
    # Sinks.
    sink("key: k"): [
        "2:9: sink 'out' needs one of 'topic', 'topic_column', 'lake', 'archive', 'screen', "
        "'delta' or 'iceberg'."
    ],
    sink("from: t, screen: true"): [
        "2:21: sink 'out' takes 't', which is not a source or step; there is 's'."
    ],
    sink("screen: false"): ["2:23: 'screen' of sink 'out' must be true."],
    sink("topic: t, upsert: x"): [
        "2:25: 'upsert' of sink 'out' is only for 'lake', 'delta' or 'iceberg'."
    ],
    sink("lake: t, upsert: x, mode: complete"): [
        "2:35: sink 'out' has 'upsert', for which the mode can only be 'update'."
    ],
    sink("topic: t, exactly_once: maybe"): [
        "2:39: 'exactly_once' must be true or false, not 'maybe'."
    ],
    sink("topic: t, options: {topic: x, acks: all, kafka.acks: all}"): [
        "2:35: 'options' of sink 'out' cannot have 'topic': the field 'topic' is for it.",
        "2:45: 'options' of sink 'out': unknown option 'acks': did you mean 'kafka.acks'?",
    ],
    sink("topic: t, mode: apend"): ["2:31: 'mode' cannot be 'apend': did you mean 'append'?"],
    sink("topic: t, schema: a INT"): [
        "2:25: sink 'out' has format 'json'; a schema is for 'avro'."
    ],
    "sources: {s: {topic: t, schema: a INT}}\nsinks: {out: {archive: x}}\n": [
        "2:15: sink 'out' is an archive, so it takes a source with format 'raw'."
    ],
    "sources: {s: {topic: t}, r: {topic: t}}\nsinks: {out: {screen: true}}\n": [
        "2:9: sink 'out' needs 'from': without steps there are several sources."
    ],
    "sources: {s: {topic: t}}\nsinks: {s-dead-letters: {screen: true}}\n": [
        "2:9: 's-dead-letters' is the name of what writes the bad records of 's'."
    ],
    # Variables.
    SHORT.replace("orders}", "'${topc}'}") + "variables: {topic: x}\n": [
        "1:28: there is no variable 'topc': did you mean 'topic'?"
    ],
    SHORT.replace("orders}", "'${topic}'}") + "variables: {topic: }\n": [
        "1:28: variable 'topic' has no default: give it with --set topic=VALUE."
    ],
    SHORT.replace("orders}", "'${env:NOTHING}'}"): [
        "1:28: the environment has no variable 'NOTHING'."
    ],
    SHORT + "variables: [a]\n": ["3:12: 'variables' must be a mapping of names to defaults."],
}


@pytest.mark.parametrize("text", PROBLEMS)
def test_a_problem_is_told_with_its_place(tmp_path: Path, text: str) -> None:
    expected = [line.replace("{directory}", str(tmp_path)) for line in PROBLEMS[text]]
    assert problems(tmp_path, text) == expected


def test_every_problem_is_told_at_once(tmp_path: Path) -> None:
    bad = [text for text in PROBLEMS if text.startswith("sources: {s: {") and ", r: " not in text]
    joined = "sources:\n" + "".join(
        f"  s{number}: {text.split('{s: ', 1)[1].splitlines()[0][:-1]}\n"
        for number, text in enumerate(bad)
    )
    said = problems(tmp_path, joined + "sinks: {out: {from: s0, screen: true}}\n")
    lines = [int(line.split(":")[0]) for line in said]
    assert lines == sorted(lines) and len(set(lines)) >= 20


def test_a_variable_that_the_file_has_not(tmp_path: Path) -> None:
    text = SHORT + "variables: {topic: x}\n"
    assert problems(tmp_path, text, topc="y") == [
        "the file has no variable 'topc': did you mean 'topic'?"
    ]


def test_variables_are_put_in_anywhere(tmp_path: Path) -> None:
    text = (
        "variables: {topics: a, within: 1 minute}\n"
        "sources: {s: {topics: '${topics}'}}\n"
        "steps: {x: \"SELECT '$${no}', INTERVAL ${within} FROM s\"}\n"
        "sinks: {out: {topic: '${given}-x'}}\n"
    )
    spec = load(tmp_path, text, topics="b,c", given="g")
    assert spec.sources[0].topics == ("b", "c")
    assert spec.steps[0].sql == "SELECT '${no}', INTERVAL 1 minute FROM s"
    assert spec.sinks[0].topic == "g-x"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "no such file or directory."),
        (b"a: \xff\n", ":1:1: the file is not text in UTF-8."),
    ],
)
def test_a_file_that_cannot_be_read(tmp_path: Path, content: bytes | None, said: str) -> None:
    path = tmp_path / "pipe.yaml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(PipelineFileError) as error:
        load_pipeline(path)
    assert str(error.value).endswith(said)
    assert str(pickle.loads(pickle.dumps(error.value))) == str(error.value)


@pytest.mark.parametrize("place", ["s3://bucket/lake", "s3a://bucket/lake", "gs://bucket/lake"])
def test_lakes_on_object_stores_are_refused_where_they_are_named(
    tmp_path: Path, place: str
) -> None:
    text = f"""\
sources:
  records: {{topic: orders}}
  people: {{lake: "{place}"}}
sinks:
  table: {{from: people, lake: "{place}"}}
  archive: {{from: records, archive: "{place}"}}
  other: {{from: people, delta: "{place}"}}
"""
    path = tmp_path / "pipe.yaml"
    path.write_text(text)
    with pytest.raises(PipelineFileError) as raised:
        load_pipeline(path)
    assert [problem.place.line for problem in raised.value.problems] == [3, 5, 6]
    assert raised.value.problems[0].sentence == (
        f"'lake' cannot be '{place}': a lake needs a local or mounted directory, because its "
        "commits need links, which object stores do not have."
    )


def test_an_archive_needs_checkpoints_that_it_can_read(tmp_path: Path) -> None:
    text = "checkpoints: s3a://bucket/c\nsources: {r: {topic: t}}\nsinks: {s: {archive: ./lake}}\n"
    path = tmp_path / "pipe.yaml"
    path.write_text(text)
    with pytest.raises(PipelineFileError, match=r":1:14: 'checkpoints' must be a local"):
        load_pipeline(path)
    path.write_text(text.replace("archive: ./lake", "topic: u, format: raw"))
    assert load_pipeline(path).checkpoints == "s3a://bucket/c"


def test_what_a_parser_finds_has_its_place_beside_other_problems(tmp_path: Path) -> None:
    path = tmp_path / "pipe.yaml"
    path.write_text("""\
sources: {orders: {topic: orders}}
steps:
  good: SELECT value FROM orders;
  bad: |
    SELECT value
    FRM orders
  short: SELECT FROM orders
sinks:
  out: {topic: out, formt: raw}
""")
    asked: list[str] = []

    def find(queries: Sequence[str]) -> list[QueryFault | None]:
        asked.extend(queries)
        return [None, QueryFault("Syntax error at 'orders'", 2, 4), QueryFault("It is short", 1, 7)]

    with pytest.raises(PipelineFileError) as raised:
        load_pipeline(path, find_faults=find)
    assert asked == ["SELECT value FROM orders", "SELECT value\nFRM orders", "SELECT FROM orders"]
    assert raised.value.lines() == [
        f"{path}:6:1: the query is wrong: Syntax error at 'orders'.",
        f"{path}:7:17: the query is wrong: It is short.",
        f"{path}:9:21: sink 'out' has no field 'formt': did you mean 'format'?",
    ]
