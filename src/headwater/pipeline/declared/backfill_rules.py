"""Which pipelines cannot be run over a range of time; found before Spark is started."""

from __future__ import annotations

from headwater.pipeline.declared.problems import PipelineFileError, Place, Problem
from headwater.pipeline.declared.specs.pipeline import PipelineSpec
from headwater.pipeline.declared.specs.sink import SinkSpec


def check_backfill(spec: PipelineSpec) -> None:
    """Refuse a backfill that would do harm to what a sink has."""
    problems = [
        Problem(Place(sink.line, 1), f"sink '{sink.name}' {harm}")
        for sink in spec.sinks
        if (harm := _harm(sink))
    ]
    if problems:
        raise PipelineFileError(str(spec.path or f"pipeline '{spec.name}'"), problems)


def _harm(sink: SinkSpec) -> str:
    if sink.kind == "archive":
        return (
            "is an archive, which keeps whole ranges of offsets and cannot be backfilled by time; "
            "run the pipeline with --once instead"
        )
    if sink.mode == "complete" and sink.kind in ("lake", "delta", "iceberg"):
        return (
            "has the mode complete: a backfill would leave nothing but its range in the table; "
            "use the mode update with upsert keys to backfill"
        )
    return ""
