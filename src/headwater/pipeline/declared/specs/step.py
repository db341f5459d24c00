"""A step of a pipeline: a query, a function, or a deduplication of what has a name before it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from headwater.pipeline.declared.specs.source import Watermark


@dataclass(frozen=True, slots=True)
class StepSpec:
    """Exactly one of `sql`, `python` and `deduplicate` is given.

    A function is called with the frames of `inputs` in their order and with `arguments` by name,
    and returns a frame. A deduplication has one input, and drops rows that have the values of the
    columns `deduplicate` in common with an earlier one, within the watermark if there is one.
    """

    name: str
    sql: str = ""
    #: `module:function`.
    python: str = ""
    deduplicate: tuple[str, ...] = ()
    #: The names that the step reads; for SQL those that it was found to name.
    inputs: tuple[str, ...] = ()
    arguments: Mapping[str, object] = field(default_factory=dict)
    #: Put on what comes out of the step.
    watermark: Watermark | None = None
    line: int = 0
    #: The line of the file where the query's text begins.
    sql_line: int = 0
