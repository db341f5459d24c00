"""How `headwater lake` shows tables: files, versions, rows, findings and progress."""

from __future__ import annotations

import base64
import datetime
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

import typer

from headwater.base.counted import counted
from headwater.cli.output.plain_table import Column, print_rows
from headwater.pipeline.lake.lake_table import LakeTable
from headwater.pipeline.lake.replay.replay import ReplayProgress
from headwater.pipeline.lake.table.data_file import DataFile
from headwater.pipeline.lake.table.manifest import Manifest
from headwater.pipeline.lake.verify.finding import Finding, problem_count

_FILE_COLUMNS = (
    Column("PATH", "path"),
    Column("ROWS", "row_count"),
    Column("BYTES", "size_bytes"),
    Column("PARTITION", "partition"),
    Column("OFFSETS", "offsets"),
)
_HISTORY_COLUMNS = (
    Column("VERSION", "version"),
    Column("TIME", "time"),
    Column("OPERATION", "operation"),
    Column("ADDED", "added_files"),
    Column("REMOVED", "removed_files"),
    Column("ROWS", "added_rows"),
    Column("BATCH", "batch_id"),
    Column("WRITER", "writer"),
)


def print_findings(table: LakeTable, findings: Sequence[Finding], *, as_json: bool) -> int:
    """Every finding, and a line about the whole; returns the number of problems."""
    count = problem_count(findings)
    for finding in findings:
        print(json.dumps(finding._asdict(), ensure_ascii=False) if as_json else finding)
    if not as_json:
        print(_summary(table, count))
    return count


def print_files(files: Sequence[DataFile], *, as_json: bool) -> None:
    rows = []
    for file in sorted(files, key=lambda each: each.path):
        span = file.records
        rows.append(
            {
                "path": file.path,
                "row_count": file.row_count,
                "size_bytes": file.size_bytes,
                "partition": None if span is None else span.partition,
                "offsets": None if span is None else f"{span.first_offset}-{span.last_offset}",
            }
        )
    print_rows(_FILE_COLUMNS, rows, as_json=as_json)


def print_history(table: LakeTable, limit: int, *, as_json: bool) -> None:
    table.snapshot()
    rows = [_history_row(manifest) for manifest in islice(table.history(), limit)]
    print_rows(_HISTORY_COLUMNS, rows, as_json=as_json)


def print_table_rows(
    table: LakeTable, columns: Sequence[str] | None, version: int | None, limit: int
) -> None:
    """The first rows; standard error tells of how many, if there are more."""
    snapshot = table.snapshot(version)
    reader = table.reader(columns, snapshot.version)
    batches = (
        batch
        for file in snapshot.files.values()
        for batch in reader.batches(file, min(limit, 4096))
    )
    rows = (row for batch in batches for row in batch.to_pylist())
    for row in islice(rows, limit):
        print(json.dumps(dict(_shown(row)), ensure_ascii=False))
    if snapshot.row_count > limit:
        sys.stdout.flush()
        of = counted(snapshot.row_count, "row")
        print(f"{limit:,} of {of}; --limit shows more.", file=sys.stderr)


def progress_printer() -> Callable[[ReplayProgress], None]:
    """Shows on standard error how far a replay is, in one line."""

    def show(progress: ReplayProgress) -> None:
        rate = progress.row_count / max(progress.duration_s, 1e-9)
        sys.stderr.write(
            f"\r{progress.row_count:,} of at most {progress.row_count_max:,} records, "
            f"{rate:,.0f} per second "
        )
        if progress.row_count >= progress.row_count_max:
            sys.stderr.write("\n")
        sys.stderr.flush()

    return show


def time_ms(option: str, text: str) -> int:
    """A time of the command line: milliseconds since 1970, or as ISO 8601 writes it, in UTC."""
    if text.isdigit():
        return int(text)
    try:
        moment = datetime.datetime.fromisoformat(text)
    except ValueError:
        raise typer.BadParameter(
            f"{text!r} is not a time: write 2026-01-31T12:00:00Z, or milliseconds since 1970",
            param_hint=option,
        ) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=datetime.UTC)
    return round(moment.timestamp() * 1000)


def _summary(table: LakeTable, count: int) -> str:
    if count:
        return f"{counted(count, 'problem')}."
    snapshot = table.snapshot()
    files, rows = counted(len(snapshot.files), "file"), counted(snapshot.row_count, "row")
    summary = f"Version {snapshot.version}: {files}, {rows}"
    if not snapshot.coverage:
        return f"{summary}, sound."
    topics = counted(len({one.topic for one in snapshot.coverage}), "topic")
    partitions = counted(len(snapshot.coverage), "partition")
    return f"{summary} of {topics} and {partitions}, without gap or repetition."


def _history_row(manifest: Manifest) -> dict[str, object]:
    moment = datetime.datetime.fromtimestamp(manifest.created_ms / 1000, datetime.UTC)
    return {
        "version": manifest.version,
        "time": moment.isoformat(timespec="milliseconds"),
        "operation": manifest.operation,
        "added_files": len(manifest.added),
        "removed_files": len(manifest.removed),
        "added_rows": sum(file.row_count for file in manifest.added),
        "batch_id": manifest.batch_id if manifest.writer else None,
        "writer": manifest.writer or None,
    }


def _shown(row: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """A row with values that JSON has."""
    for name, value in row.items():
        if isinstance(value, bytes):
            try:
                yield name, value.decode()
            except UnicodeDecodeError:
                yield f"{name}:base64", base64.b64encode(value).decode()
        else:
            yield name, _plain(value)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return dict(_shown(value))
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, tuple):
        # An entry of a map.
        return [_plain(each) for each in value]
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, datetime.date):
        return value.isoformat()
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)
