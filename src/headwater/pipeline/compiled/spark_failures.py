"""What a failure of Spark means: one sentence out of its messages, plans and traces.

Spark tells of a mistake as `[CONDITION] sentence. SQLSTATE: 42703; line 2 pos 1;` and a plan below,
of a failed query as that inside of several others. `analysis_problem` and `failure_sentence` keep
what a person can act on.
"""

from __future__ import annotations

import re
from typing import Final

from headwater.pipeline.declared.query_fault import QueryFault
from headwater.pipeline.declared.specs.pipeline import PipelineSpec
from headwater.pipeline.declared.specs.run_mode import Continuous, RunMode

_CONDITION: Final = re.compile(r"\[([A-Z0-9_]+(?:\.[A-Z0-9_]+)*)\]\s*")
_STATE: Final = re.compile(r"\s*SQLSTATE: \w{5}")
_LINE: Final = re.compile(r"\bline (\d+),? pos (\d+)\b")
_LENGTH_MAX: Final = 600

#: What Spark says, in part, when a query does not fit the checkpoint that it is to go on from.
_MISFITS: Final = (
    "STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE",
    "STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE",
    "STATE_STORE_SCHEMA",
    "STATE_STORE_INVALID",
    "STREAMING_STATEFUL_OPERATOR_NOT_MATCH_IN_STATE_METADATA",
    "STREAM_CHECKPOINT_",
    "STREAMING_CHECKPOINT_",
    "CANNOT_LOAD_STATE_STORE",
    "sources in the checkpoint offsets and now there are",
    "Provided schema doesn't match to the schema for existing state",
)
_USER_RAISED: Final = "USER_RAISED_EXCEPTION"
#: The name of a class before what is a sentence of ours already.
_OURS: Final = re.compile(r"^(?:headwater\.[\w.]+|RuntimeError): ")
_PYTHON_ERROR: Final = re.compile(
    r"^(?:[A-Za-z_][\w.]*)?(?:Error|Exception|Exit)\b.*", re.MULTILINE
)


def analysis_problem(error: BaseException) -> tuple[str, int]:
    """The sentence of Spark's complaint, and the line inside the query it is about (0: unknown)."""
    text = str(error).strip()
    line = _LINE.search(text)
    return _first_sentence(text), int(line.group(1)) if line else 0


def parse_problem(text: str) -> QueryFault:
    """What Spark's parser says of a query, as a fault with its place."""
    place = _LINE.search(text)
    line, position = (int(place[1]), int(place[2])) if place else (1, 0)
    return QueryFault(_first_sentence(text), line, position)


def failure_sentence(
    error: BaseException, spec: PipelineSpec, query_name: str, mode: RunMode | None = None
) -> str:
    """Why a query of the pipeline failed."""
    text = str(error)
    if any(part in text for part in _MISFITS):
        where = spec.checkpoint_location(query_name, mode or Continuous())
        return (
            f"'{query_name}' cannot go on from its checkpoint in {where}, because what the "
            f"pipeline declares has changed since ({cause_of(error)}); change it back, or give the "
            "sink another name or the run another state directory to begin anew"
        )
    return f"'{query_name}' failed: {cause_of(error)}"


def cause_of(error: BaseException) -> str:
    """The innermost thing that went wrong, in one line."""
    text = str(error)
    raised = [found.end() for found in _CONDITION.finditer(text) if found.group(1) == _USER_RAISED]
    if raised:
        return _first_sentence(text[raised[-1] :])
    python = _PYTHON_ERROR.findall(text)
    if "Traceback (most recent call last)" in text and python:
        return _first_sentence(_OURS.sub("", python[-1]))
    conditions = [
        found for found in _CONDITION.finditer(text) if found.group(1) not in ("STREAM_FAILED",)
    ]
    return _first_sentence(text[conditions[-1].start() :] if conditions else text)


def _first_sentence(text: str) -> str:
    """Without condition, state, place and plan, on one line."""
    text = _CONDITION.sub("", text, count=1).strip()
    state = _STATE.search(text)
    if state is not None:
        text = text[: state.start()]
    text = re.split(r"\n\s*(?:'?[A-Z]\w+ [\[(]|== |at |\+- |JVM stacktrace)", text)[0]
    text = _LINE.sub("", text)
    text = " ".join(text.split()).rstrip(" ;.")
    return text if len(text) <= _LENGTH_MAX else f"{text[:_LENGTH_MAX]}..."
