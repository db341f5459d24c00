"""The headers of one dead letter of a source, decided without Spark: it runs in its workers.

Beside those that every dead letter has, there are some that tell of the pipeline, and say the
reason and the place once more, under the names that letters of pipelines have always had.
"""

from __future__ import annotations

from typing import Any, Final

from headwater.base.message_id import MessageId
from headwater.client.failures.letter_headers import PIPELINE_PREFIX, Failure, letter_headers
from headwater.pipeline.compiled.coding.bad_json import json_problem

#: What `headwater-error-class` says of all of them.
BAD_RECORD: Final = "BadRecord"


def source_letter_headers(
    row: dict[str, Any], pipeline: str, source: str, group: str, schema_json: str
) -> list[dict[str, Any]]:
    """The headers of one letter, as Arrow takes them.

    `row` has the record's `headers`, `topic`, `partition`, `offset` and `timestamp_ms`; `problem`,
    `failed_ms`, and as `misfit` a value that should be JSON of the schema and is not.
    """
    reason = row["problem"]
    if schema_json and row["misfit"]:
        reason = json_problem(row["misfit"], schema_json) or reason
    told = {
        "reason": reason,
        "pipeline": pipeline,
        "source": source,
        "topic": row["topic"],
        "partition": row["partition"],
        "offset": row["offset"],
        "timestamp": row["timestamp_ms"],
    }
    before = [(each["key"], each["value"]) for each in row["headers"] or ()]
    # A letter that was sent back has had some of these.
    kept = [each for each in before if not each[0].startswith(PIPELINE_PREFIX)]
    kept += [
        (PIPELINE_PREFIX + name, str(text).encode("utf-8", "replace"))
        for name, text in told.items()
    ]
    place = MessageId(row["topic"], row["partition"], row["offset"])
    failure = Failure(group, reason, BAD_RECORD, row["failed_ms"])
    headers = letter_headers(kept, failure, place=place)
    return [{"key": key, "value": value} for key, value in headers]
