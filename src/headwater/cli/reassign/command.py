"""`headwater reassign`: have partitions move to other brokers.

Files are those of Kafka's kafka-reassign-partitions.sh.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, TypeAlias

import typer

from headwater.cli.options.cluster import TIMEOUT_MS, BootstrapServer, RequestTimeout, on_cluster
from headwater.cli.options.json_option import RowsAsJson
from headwater.cli.options.pace import PER_BROKER, PerBroker, Throttle, throttle_or_default
from headwater.cli.options.throttle import parse_throttle
from headwater.cli.reassign.moves_file import OPTION, read_moves

if TYPE_CHECKING:
    from headwater.base.ids import TopicPartition

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)

EXIT_FAILURE: Final = 1
_MB: Final = 1_000_000

HELP = """\
Have partitions move to other brokers.

A file says which brokers shall hold which partitions, the preferred leader first. It is the one \
that Kafka's kafka-reassign-partitions.sh takes:

    {"version": 1, "partitions": [{"topic": "orders", "partition": 0, "replicas": [2, 3]}]}

Which moves would even the cluster out, as such a file:

    headwater reassign plan --out moves.json

To carry it out, to see what is still under way, and to go back to where partitions were:

    headwater reassign execute --reassignment-json-file moves.json

    headwater reassign status

    headwater reassign throttle 20MB

    headwater reassign cancel --reassignment-json-file moves.json

Moves are carried out in steps, each when the one before has arrived, and can be ended at any \
time: what has begun goes on, and what has not stays where it is. With --no-wait all begin at \
once, as with Kafka's tool. A move ends by itself when all of its new replicas are in sync. \
Beginning another one of the same partition takes its place.

A throttle is the most that a broker sends or receives for new replicas in a second. It belongs \
to the move and goes with it. What moves already keeps the one that it has, unless another one is \
given.
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


@app.command("plan")
def plan_moves(
    path: Annotated[
        str | None,
        typer.Option("--out", metavar="FILE", help="Write the moves to it, for execute."),
    ] = None,
    watch_seconds: Annotated[
        float,
        typer.Option("--watch-seconds", min=0, help="How long to watch what is written, before."),
    ] = 2.0,
    rate: Annotated[
        int,
        typer.Option(
            "--rate", min=1, metavar="MB", help="What a broker receives in a second, to foretell."
        ),
    ] = 50,
    bootstrap_server: BootstrapServer = None,
    timeout_ms: RequestTimeout = TIMEOUT_MS,
) -> None:
    """Show which moves would even out replicas, disks, traffic and leaders."""
    from headwater.cli.reassign import planning

    on_cluster(
        bootstrap_server,
        lambda connection: planning.plan_moves(connection, watch_seconds, rate * _MB, path),
        timeout_ms=timeout_ms,
    )


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
    throttle: Throttle = None,
    moves_per_broker: PerBroker = PER_BROKER,
    no_wait: Annotated[
        bool,
        typer.Option("--no-wait", help="Begin all moves at once, and do not wait for their end."),
    ] = False,
    as_json: RowsAsJson = False,
    bootstrap_server: BootstrapServer = None,
    timeout_ms: RequestTimeout = TIMEOUT_MS,
) -> None:
    """Move partitions, in steps."""
    moves = read_moves(path)
    throttle_bytes = throttle_or_default(throttle)
    from headwater.cli.reassign.executing import ExecuteOptions, execute

    options = ExecuteOptions(
        moves_per_broker,
        throttle_bytes,
        is_throttle_given=throttle is not None,
        factor_may_change=not disallow_factor_change,
        is_waiting=not no_wait,
    )
    failed = on_cluster(
        bootstrap_server,
        lambda connection: execute(connection, moves, options, as_json=as_json),
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


@app.command("throttle")
def throttle_moves(
    rate: Annotated[
        str,
        typer.Argument(
            metavar="RATE",
            help="The most that a broker sends or receives in a second, as in 50MB; or none.",
            show_default=False,
        ),
    ],
    as_json: RowsAsJson = False,
    bootstrap_server: BootstrapServer = None,
    timeout_ms: RequestTimeout = TIMEOUT_MS,
) -> None:
    """Give all moves that are under way another throttle, or none."""
    throttle_bytes = parse_throttle(rate, "RATE")
    from headwater.cli.reassign.actions import throttle

    failed = on_cluster(
        bootstrap_server,
        lambda connection: throttle(connection, throttle_bytes, as_json=as_json),
        timeout_ms=timeout_ms,
    )
    if failed:
        raise typer.Exit(EXIT_FAILURE)


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
