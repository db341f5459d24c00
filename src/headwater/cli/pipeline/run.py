"""`headwater pipeline run`: loads the file, runs it with a view of its progress, and ends."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

import typer

from headwater.cli.pipeline.file import load_or_exit
from headwater.cli.pipeline.view import make_view, row_words
from headwater.pipeline.declared.specs.pipeline import PipelineSpec
from headwater.pipeline.declared.specs.run_mode import Continuous, RunMode
from headwater.pipeline.runs.pipeline_run import RunPlan, run_pipeline
from headwater.pipeline.runs.run_record import RunRecord, RunState
from headwater.pipeline.runs.run_signals import RunSignals, StoppedAtOnce

EXIT_AT_ONCE: Final = 130
#: Of a run that ends by itself, if it could not decode a single record.
EXIT_ALL_REJECTED: Final = 3


def run_from_command_line(
    named: str,
    mode: RunMode,
    *,
    variables: Mapping[str, str],
    configs: Mapping[str, str],
    master: str | None,
    state_root: Path | None,
    bootstrap_server: str | None,
    allow_all_rejected: bool = False,
) -> None:
    """Run it to its end; failures end the command with a sentence."""
    spec = load_or_exit(named, variables, bootstrap_servers=bootstrap_server)
    spec = replace(spec, spark={**spec.spark, **configs})
    if state_root is not None:
        spec = replace(spec, state_directory=state_root / spec.name)
    # A table that is redrawn and rows that are printed would spoil each other.
    with make_view(live=not any(sink.screen for sink in spec.sinks)) as view:
        signals = RunSignals(view.show, view.say)
        try:
            record = run_pipeline(
                RunPlan(spec, mode, master), signals, say=view.stage, print_rows=view.print_rows
            )
        except StoppedAtOnce:
            view.close()
            print("headwater: stopped at once.", file=sys.stderr, flush=True)
            # Spark may be in the middle of anything; Java ends when its standard input does.
            os._exit(EXIT_AT_ONCE)
    _report_end(record)
    if record.rejected_all:
        _warn_of_rejects(record, spec)
        if not isinstance(mode, Continuous) and not allow_all_rejected:
            raise typer.Exit(EXIT_ALL_REJECTED)


def _report_end(record: RunRecord) -> None:
    if record.state is RunState.FAILED:
        print(f"headwater: {record.error.rstrip('.')}.", file=sys.stderr)
        if record.spark_log:
            print(f"Spark's log has more: {record.spark_log}", file=sys.stderr)
        raise typer.Exit(1)
    rows = row_words(record.rows)
    print(f"Pipeline {record.pipeline!r} has {record.state}: {rows}.", file=sys.stderr)


def _warn_of_rejects(record: RunRecord, spec: PipelineSpec) -> None:
    letters = (spec.dead_letter_topic(each) for each in spec.sources if each.has_dead_letters)
    topics = list(dict.fromkeys(letters))
    reasons = f" The reasons are in {' and '.join(topics)}." if topics else ""
    print(
        f"headwater: warning: {record.pipeline!r} rejected every row that it read and wrote "
        f"nothing; check the format and the schema of its source.{reasons}",
        file=sys.stderr,
    )
