"""How `headwater log verify` shows its work: findings, a progress bar, a summary.

Findings go to standard output as they are made. The bar is drawn on standard error, only if that is
a terminal and the work takes a while, and disappears.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from headwater.cli.output.colour import Tone, painted
from headwater.storage.inspection.read_only_files import ReadOnlyFiles
from headwater.storage.inspection.verify.findings import Finding, Report
from headwater.storage.inspection.verify.verify import count_log_bytes, verify_into

BYTES_PER_MB = 1_000_000
#: Less than this is verified before a bar could be read.
PROGRESS_FROM_BYTES = 64 << 20

_TITLES = {"mb_per_s": "MB/s"}


def run_verification(directories: Sequence[str], *, deep: bool, as_json: bool) -> int:
    """Verify directories and show what there is; returns the number of problems."""
    files = ReadOnlyFiles()
    paths = [_named(directory) for directory in directories]
    started_s = time.monotonic()
    with _progress(files, paths) as on_bytes:
        report = Report(
            deep=deep,
            on_bytes=on_bytes,
            on_finding=_print_finding_json if as_json else _print_finding,
        )
        for path in paths:
            verify_into(report, files, path, is_locked=files.is_locked)
    summary = _summary(report, time.monotonic() - started_s)
    if as_json:
        print(json.dumps({"type": "summary", **summary}))
    else:
        _print_summary(summary)
    return report.problem_count


def _named(directory: str) -> str:
    """A path that ends in the directory's own name, which says what partition it holds."""
    is_named = os.path.basename(directory) not in ("", ".", "..")
    return directory if is_named else os.path.abspath(directory)


def _print_finding(finding: Finding) -> None:
    print(finding)


def _print_finding_json(finding: Finding) -> None:
    print(json.dumps({"type": "finding", **finding._asdict()}))


@contextlib.contextmanager
def _progress(files: ReadOnlyFiles, paths: Sequence[str]) -> Iterator[Callable[[int], None]]:
    """What to tell of bytes that are done."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    total_bytes = sum(count_log_bytes(files, path) for path in paths if files.is_dir(path))
    if total_bytes < PROGRESS_FROM_BYTES:
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn
    from rich.progress import TransferSpeedColumn as SpeedColumn

    bar = Progress(
        "Verifying",
        BarColumn(),
        DownloadColumn(),
        SpeedColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
        redirect_stdout=sys.stdout.isatty(),
        redirect_stderr=False,
    )
    with bar:
        task = bar.add_task("", total=total_bytes)
        yield lambda count: bar.update(task, advance=count)


def _summary(report: Report, duration_s: float) -> dict[str, Any]:
    return {
        "partitions": report.partition_count,
        "segments": report.segment_count,
        "batches": report.batch_count,
        "records": report.record_count,
        "bytes": report.size_bytes,
        "seconds": round(duration_s, 3),
        "mb_per_s": round(report.size_bytes / BYTES_PER_MB / max(duration_s, 1e-9), 1),
        "problems": report.problem_count,
        "notes": report.note_count,
    }


def _print_summary(summary: dict[str, Any]) -> None:
    """Upright, so that it is as narrow as a terminal can be."""
    shown = {_TITLES.get(name, name): f"{value:,}" for name, value in summary.items()}
    title_width, value_width = max(map(len, shown)), max(map(len, shown.values()))
    for title, value in shown.items():
        tone = Tone.BAD if title == "problems" and summary["problems"] else None
        print(f"{title:<{title_width}}  {painted(value.rjust(value_width), tone)}")
