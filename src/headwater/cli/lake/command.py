"""`headwater lake`: look into lake tables, verify, compact and vacuum them, and replay archives.

What the commands do is in `headwater.pipeline.lake`, which needs pyarrow and is imported when a
command runs, so that `--help` answers at once and works without it.
"""

from __future__ import annotations

import importlib.util
import sys
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from headwater.base.counted import counted
from headwater.base.extras import missing_package
from headwater.cli.options.cluster import BootstrapServer
from headwater.cli.output.standard_output import standard_output

if TYPE_CHECKING:
    from headwater.pipeline.lake.lake_table import LakeTable

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)

EXIT_PROBLEMS = 1

# A paragraph is one line here: the help wraps it to the terminal, and keeps line breaks in it.
VERIFY_HELP = """\
Check that a lake table is what its manifests say. Nothing is changed; writers may continue.

It checks the chain of versions and the existence, size, rows and columns of every file. In an \
archive of topics it checks that the ranges of offsets have no gap, that every record lies in its \
range, and that no record is there twice. With a bootstrap server, everything that the topics \
still hold must be in the archive with the same keys and values, up to where the archive ends.

Each problem is one line, and the exit code is then 1. A note is no problem, but worth knowing.

Compare an archive with the cluster:

    headwater lake verify ./lake --bootstrap-server localhost:9092
"""

READ_HELP = """\
Print rows of a lake table as JSON, one per line.

Bytes that are not text are shown in base64, under a key that ends in :base64. If there are more \
rows than are shown, standard error says how many.

The first ten values of an older version:

    headwater lake read ./lake --version 17 --limit 10 --columns partition,offset,value
"""

FILES_HELP = """\
List the files of a lake table, with their rows, sizes and offsets.

    headwater lake files ./lake
"""

HISTORY_HELP = """\
List the versions of a lake table, newest first: who changed what, and when.

    headwater lake history ./lake --limit 5
"""

COMPACT_HELP = """\
Join small files into larger ones. Rows stay as they are; readers and writers may continue.

The old files stay on disk for readers of older versions, until vacuum removes them.

    headwater lake compact ./lake
"""

VACUUM_HELP = """\
Remove old versions, and files that no version names any more.

Versions that were current within the given time are kept, and so are newer files, because \
a writer may be about to commit them.

    headwater lake vacuum ./lake --older-than-hours 48
"""

REPLAY_HELP = """\
Write archived records to a topic again: all of them or a range of time, at a chosen rate.

Records keep key, value, headers, timestamp and their order within a partition. \
A replay that was interrupted continues when it is started again with the same name; \
readers with isolation.level=read_committed see each record once.

The orders of one day, at a thousand per second:

    headwater lake replay ./lake --topic orders --target orders-again \\
        --from 2026-01-31T00:00:00Z --until 2026-02-01T00:00:00Z --rate 1000
"""

Table: TypeAlias = Annotated[
    str, typer.Argument(metavar="PATH", show_default=False, help="The directory of a lake table.")
]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Print one JSON object per line.")]
Version: TypeAlias = Annotated[
    int | None,
    typer.Option("--version", min=1, help="The version to show.", show_default="the newest"),
]


@app.callback()
def _lake() -> None:
    """Inspect lake tables, verify, compact and vacuum them, and replay archives of topics."""


@app.command(help=VERIFY_HELP)
def verify(
    path: Table,
    bootstrap_server: Annotated[
        str | None,
        typer.Option(
            "--bootstrap-server",
            "-b",
            metavar="HOST:PORT,...",
            help="Also compare an archive with the topics of this cluster.",
        ),
    ] = None,
    deep: Annotated[
        bool, typer.Option("--deep", help="Read all bytes of all files, against their checksums.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    _need_arrow()
    from headwater.cli.lake.output import print_findings
    from headwater.pipeline.lake.verify.verify import verify as verify_table

    table = _open(path)
    with standard_output():
        findings = verify_table(table, bootstrap_servers=bootstrap_server, deep=deep)
        problem_count = print_findings(table, findings, as_json=as_json)
    if problem_count:
        raise typer.Exit(EXIT_PROBLEMS)


@app.command(help=FILES_HELP)
def files(path: Table, version: Version = None, as_json: AsJson = False) -> None:
    _need_arrow()
    from headwater.cli.lake.output import print_files

    with standard_output():
        print_files(_open(path).files(version), as_json=as_json)


@app.command(help=HISTORY_HELP)
def history(
    path: Table,
    limit: Annotated[int, typer.Option(min=1, help="Show at most this many versions.")] = 20,
    as_json: AsJson = False,
) -> None:
    _need_arrow()
    from headwater.cli.lake.output import print_history

    with standard_output():
        print_history(_open(path), limit, as_json=as_json)


@app.command(help=READ_HELP)
def read(
    path: Table,
    limit: Annotated[int, typer.Option(min=1, help="Show at most this many rows.")] = 100,
    columns: Annotated[
        str | None,
        typer.Option(metavar="NAME,...", help="Show only these columns.", show_default="all"),
    ] = None,
    version: Version = None,
) -> None:
    _need_arrow()
    from headwater.cli.lake.output import print_table_rows

    names = None if columns is None else [name.strip() for name in columns.split(",")]
    with standard_output():
        print_table_rows(_open(path), names, version, limit)


@app.command(help=COMPACT_HELP)
def compact(path: Table) -> None:
    _need_arrow()
    from headwater.pipeline.lake.upkeep.compaction import compact as compact_table

    report = compact_table(_open(path))
    attempts = counted(report.conflict_count, "attempt")
    conflicts = f" after {attempts} that lost to other writers" if report.conflict_count else ""
    if not report.removed_count:
        print(f"There was nothing to join{conflicts}.")
        return
    print(
        f"Joined {counted(report.removed_count, 'file')} into {report.added_count:,}, with "
        f"{counted(report.row_count, 'row')}{conflicts}."
    )


@app.command(help=VACUUM_HELP)
def vacuum(
    path: Table,
    older_than_hours: Annotated[
        float, typer.Option(min=0, metavar="HOURS", help="Keep what is newer than this.")
    ] = 24.0,
) -> None:
    _need_arrow()
    from headwater.cli.output.sizes import size_text
    from headwater.pipeline.lake.upkeep.vacuum import vacuum as vacuum_table

    report = vacuum_table(_open(path), older_than_s=older_than_hours * 3600)
    print(
        f"Removed {counted(report.version_count, 'version')} and "
        f"{counted(report.file_count, 'file')}: {size_text(report.size_bytes)}."
    )


@app.command(help=REPLAY_HELP)
def replay(
    path: Table,
    target: Annotated[
        str,
        typer.Option(
            metavar="TOPIC",
            help="The topic to write to; it is created if it does not exist.",
            show_default=False,
        ),
    ],
    topic: Annotated[
        str | None,
        typer.Option(help="The archived topic.", show_default="the only one in the archive"),
    ] = None,
    name: Annotated[
        str, typer.Option(help="The name of this replay; a new name starts from the beginning.")
    ] = "replay",
    start: Annotated[
        str | None,
        typer.Option("--from", metavar="TIME", help="Records of this time and later."),
    ] = None,
    until: Annotated[
        str | None, typer.Option(metavar="TIME", help="Records before this time.")
    ] = None,
    rate: Annotated[
        float | None,
        typer.Option(
            min=0.001, metavar="ROWS", help="At most this many per second.", show_default="no limit"
        ),
    ] = None,
    bootstrap_server: BootstrapServer = None,
) -> None:
    _need_arrow()
    from headwater.cli.lake.output import progress_printer, time_ms
    from headwater.cli.options.cluster import bootstrap_servers
    from headwater.pipeline.lake.replay.replay import replay as replay_table

    report = replay_table(
        _open(path),
        bootstrap_servers=bootstrap_servers(bootstrap_server),
        topic=topic,
        target=target,
        name=name,
        from_ms=None if start is None else time_ms("--from", start),
        until_ms=None if until is None else time_ms("--until", until),
        rows_per_s=rate,
        on_progress=progress_printer() if sys.stderr.isatty() else None,
    )
    records = counted(report.row_count, "record")
    print(f"{records} written to {target} in {report.duration_s:.1f} s.")


def _need_arrow() -> None:
    """Say what to install where there is no Arrow, before anything is imported that needs it."""
    if importlib.util.find_spec("pyarrow") is None:
        raise missing_package("A lake", "pyarrow", "spark")


def _open(path: str) -> LakeTable:
    from headwater.pipeline.lake.lake_table import LakeTable

    return LakeTable(path)
