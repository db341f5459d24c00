"""`headwater reassign`: have partitions move to other brokers.

Files are those of Kafka's kafka-reassign-partitions.sh.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, TypeAlias

import typer

from headwater.cli.options.cluster import TIMEOUT_MS, BootstrapServer, RequestTimeout, on_cluster
from headwater.cli.options.json_option import RowsAsJson
from headwater.cli.reassign.moves_file import OPTION, read_moves

if TYPE_CHECKING:
    from headwater.base.ids import TopicPartition

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)

EXIT_FAILURE: Final = 1

HELP = """\
Have partitions move to other brokers.

A file says which brokers shall hold which partitions, the preferred leader first. It is the one \
that Kafka's kafka-reassign-partitions.sh takes:

    {"version": 1, "partitions": [{"topic": "orders", "partition": 0, "replicas": [2, 3]}]}

To begin, to see what is still under way, and to go back to where partitions were:

    headwater reassign execute --reassignment-json-file moves.json

    headwater reassign status

    headwater reassign cancel --reassignment-json-file moves.json

A move ends by itself when all of its new replicas are in sync. Beginning another one of the same \
partition takes its place.
"""

MovesFile: TypeAlias = Annotated[
    str, typer.Option(OPTION, metavar="FILE", help="Where partitions shall be, as JSON.")
]
SomeMovesFile: TypeAlias = Annotated[
    str | None,
    typer.Option(OPTION, metavar="FILE", help="Only the partitions that this file names."),
]


@app.callback(help=HELP)
def _reassign() -> None:
    pass


@app.command("execute")
def execute_moves(
    path: MovesFile,
    disallow_factor_change: Annotated[
        bool,
        typer.Option(
            "--disallow-replication-factor-change",
            help="Refuse to give a partition more or fewer replicas than it has.",
        ),
    ] = False,
    as_json: RowsAsJson = False,
    bootstrap_server: BootstrapServer = None,
    timeout_ms: RequestTimeout = TIMEOUT_MS,
) -> None:
    """Begin to move partitions."""
    moves = read_moves(path)
    from headwater.cli.reassign.actions import execute

    failed = on_cluster(
        bootstrap_server,
        lambda connection: execute(
            connection, moves, factor_may_change=not disallow_factor_change, as_json=as_json
        ),
        timeout_ms=timeout_ms,
    )
    if failed:
        raise typer.Exit(EXIT_FAILURE)


@app.command("status")
def show_status(
    path: SomeMovesFile = None,
    as_json: RowsAsJson = False,
    bootstrap_server: BootstrapServer = None,
    timeout_ms: RequestTimeout = TIMEOUT_MS,
) -> None:
    """Show the moves that are under way."""
    partitions = _named(path)
    from headwater.cli.reassign.actions import print_status

    on_cluster(
        bootstrap_server,
        lambda connection: print_status(connection, partitions, as_json=as_json),
        timeout_ms=timeout_ms,
    )


@app.command("cancel")
def cancel_moves(
    path: SomeMovesFile = None,
    as_json: RowsAsJson = False,
    bootstrap_server: BootstrapServer = None,
    timeout_ms: RequestTimeout = TIMEOUT_MS,
) -> None:
    """Cancel moves, all of them or those of a file: partitions stay where they were."""
    partitions = _named(path)
    from headwater.cli.reassign.actions import cancel

    failed = on_cluster(
        bootstrap_server,
        lambda connection: cancel(connection, partitions, as_json=as_json),
        timeout_ms=timeout_ms,
    )
    if failed:
        raise typer.Exit(EXIT_FAILURE)


def _named(path: str | None) -> list[TopicPartition] | None:
    return None if path is None else sorted(read_moves(path))
