from pathlib import Path

import pytest

from headwater.pipeline.compiled.spark_failures import analysis_problem, failure_sentence
from headwater.pipeline.declared.specs.pipeline import PipelineSpec

SPEC = PipelineSpec(
    name="shop",
    bootstrap_servers="b:1",
    sources=(),
    steps=(),
    sinks=(),
    state_directory=Path("/state"),
)

UNRESOLVED = """[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column, variable, or function parameter with \
name `nope` cannot be resolved. Did you mean one of the following? [`value`]. SQLSTATE: 42703; \
line 2 pos 1;
'Project [value#0, 'nope]
+- SubqueryAlias tt
   +- View (`tt`, [value#0])
"""
SYNTAX = """
[PARSE_SYNTAX_ERROR] Syntax error at or near 'x'. SQLSTATE: 42601 (line 3, pos 7)

== SQL ==
select a,
 b frm x where
-------^^^
"""
RAISED = """[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: Job aborted due \
to stage failure: Task 0 in stage 3.0 failed 1 times, most recent failure: Lost task 0.0 in \
stage 3.0 (TID 5) (127.0.0.1 executor driver): org.apache.spark.SparkRuntimeException: \
[USER_RAISED_EXCEPTION] Source 'orders': bad record in topic orders, partition 0, offset 7: the \
value is empty. SQLSTATE: P0001
\tat org.apache.spark.sql.errors.QueryExecutionErrors$.raiseError(QueryExecutionErrors.scala:2726)
"""
PYTHON = """[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: \
org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "worker.py", line 1, in main
    process()
  File "mine.py", line 3, in f
ValueError: no such rate: XYZ
\tat org.apache.spark.api.python.BasePythonRunner
"""
SOURCES = """[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: assertion \
failed: There are [1] sources in the checkpoint offsets and now there are [2] sources requested \
by the query. Cannot continue. SQLSTATE: XXKST
"""
STATE = """[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: \
[STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE] Provided key schema does not match existing state key \
schema. SQLSTATE: XXKST
"""


@pytest.mark.parametrize(
    ("text", "sentence", "line"),
    [
        (
            UNRESOLVED,
            "A column, variable, or function parameter with name `nope` cannot be resolved. Did "
            "you mean one of the following? [`value`]",
            2,
        ),
        (SYNTAX, "Syntax error at or near 'x'", 3),
        ("[TABLE_OR_VIEW_NOT_FOUND] It is not there.", "It is not there", 0),
    ],
)
def test_a_complaint_is_one_sentence_and_a_line(text: str, sentence: str, line: int) -> None:
    assert analysis_problem(Exception(text)) == (sentence, line)


def test_a_bad_record_is_told_as_the_source_told_it() -> None:
    assert failure_sentence(Exception(RAISED), SPEC, "totals") == (
        "'totals' failed: Source 'orders': bad record in topic orders, partition 0, offset 7: the "
        "value is empty"
    )


def test_an_error_of_a_python_function_is_its_last_line() -> None:
    sentence = failure_sentence(Exception(PYTHON), SPEC, "totals")
    assert sentence == "'totals' failed: ValueError: no such rate: XYZ"


@pytest.mark.parametrize("name", ["headwater.client.errors.NoBrokerError", "RuntimeError"])
def test_a_sentence_of_ours_comes_without_the_class_that_carried_it(name: str) -> None:
    text = PYTHON.replace("ValueError: no such rate: XYZ", f"{name}: Nobody answers.")
    assert failure_sentence(Exception(text), SPEC, "totals") == "'totals' failed: Nobody answers"


@pytest.mark.parametrize("text", [SOURCES, STATE])
def test_a_checkpoint_that_does_not_fit_is_named(text: str) -> None:
    sentence = failure_sentence(Exception(text), SPEC, "totals")
    assert sentence.startswith("'totals' cannot go on from its checkpoint in /state/checkpoints/")
    assert "has changed since" in sentence
    assert "\n" not in sentence
