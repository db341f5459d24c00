"""Finds the file that a command names, or the built-in one, loads it, and says what is wrong."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from headwater.base.counted import counted
from headwater.base.extras import missing_package

if TYPE_CHECKING:
    from headwater.pipeline.declared.query_fault import QueryFault
    from headwater.pipeline.declared.specs.pipeline import PipelineSpec


def find_pipeline(named: str) -> Path:
    """The path of a file, or of the built-in pipeline of that name if there is no such file."""
    from headwater.pipeline.builtin.catalogue import builtin_names, builtin_path

    path = Path(named)
    if path.exists() or named not in builtin_names():
        if not path.exists() and "/" not in named and "." not in named:
            # It looks like a name, so the answer should know the names.
            return builtin_path(named)
        return path
    return builtin_path(named)


def load_or_exit(named: str, variables: Mapping[str, str], **options: Any) -> PipelineSpec:
    """The pipeline; its problems are printed, a line each, and end the command."""
    if importlib.util.find_spec("yaml") is None:
        raise missing_package("A pipeline", "PyYAML", "spark")
    from headwater.pipeline.declared.pipeline_file import load_pipeline
    from headwater.pipeline.declared.problems import PipelineFileError

    path = find_pipeline(named)
    try:
        return load_pipeline(path, variables, **options)
    except PipelineFileError as error:
        for line in error.lines():
            print(line, file=sys.stderr)
        count = len(error.problems)
        if count > 1:
            print(f"headwater: {counted(count, 'problem')} in {path}.", file=sys.stderr)
        raise typer.Exit(1) from None


def print_validation(named: str, variables: Mapping[str, str], *, with_sql: bool) -> None:
    """Load it, and say in a line what it is."""
    spec = load_or_exit(named, variables, find_faults=_find_faults if with_sql else None)
    _check_table_formats(spec)
    parts = (
        counted(len(spec.sources), "source"),
        counted(len(spec.steps), "step"),
        counted(len(spec.sinks), "sink"),
    )
    print(f"{spec.path}: pipeline {spec.name!r} is well formed: {', '.join(parts)}.")


def _find_faults(queries: Sequence[str]) -> Sequence[QueryFault | None]:
    """What Spark's parser finds; nothing where there is no Spark, which is said."""
    from headwater.pipeline.spark.errors import SparkUnavailableError
    from headwater.pipeline.spark.sql_parser import find_faults

    print("Checking the SQL with Spark's parser; --no-sql skips that.", file=sys.stderr, flush=True)
    try:
        return find_faults(queries)
    except SparkUnavailableError as missing:
        print(f"The SQL was not checked: {missing}", file=sys.stderr)
        return [None] * len(queries)


def _check_table_formats(spec: PipelineSpec) -> None:
    """Refuse what has no release for the Spark that is installed, if there is one."""
    wanted = any(sink.kind in ("delta", "iceberg") for sink in spec.sinks)
    if wanted and importlib.util.find_spec("pyspark") is not None:
        from headwater.pipeline.compiled.sinks.table_formats import check_releases

        check_releases(spec)


def print_builtin(name: str | None) -> None:
    """The file of one, or the names of all with what each is for."""
    from headwater.pipeline.builtin.catalogue import builtin_names, builtin_path

    if name is not None:
        print(builtin_path(name).read_text(encoding="utf-8"), end="")
        return
    for known in builtin_names():
        print(f"{known:<12} {_description(builtin_path(known))}".rstrip())


def _description(path: Path) -> str:
    """The line of a built-in file that says what it is for; its variables may be open."""
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("description:"):
            return line.partition(":")[2].strip().strip("\"'")
    return ""
