"""The commands of `headwater brokers` for single brokers: looked at, restarted, retired."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from headwater.cli.options.cluster import TIMEOUT_MS, BootstrapServer, RequestTimeout, on_cluster
from headwater.cli.options.duration import duration_ms
from headwater.cli.options.json_option import AsJson

if TYPE_CHECKING:
    from headwater.client.connection.cluster_connection import ClusterConnection

ROLLING_HELP = """\
Restart brokers one after the other, with a command of your own.

    headwater brokers rolling-restart --command 'ssh {host} systemctl restart headwater'

    headwater brokers rolling-restart --command 'systemctl restart headwater@{id}' --dry-run

{id} and {host} are those of the broker. Before each one, what restart-check asks must be answered \
well. After its command the broker must have gone and come back, and every partition of the \
cluster must have all replicas in sync; then comes the next one, the controller last. In the end \
the preferred leaders lead again. It ends at the first trouble, with exit code 1, and leaves the \
others as they are.
"""


def add_to(app: typer.Typer) -> None:
    """Make them commands of `headwater brokers`."""
    app.command("describe")(_describe)
    app.command("rolling-restart", help=ROLLING_HELP)(_rolling_restart)
    app.command("unregister")(_unregister)


def _describe(
    broker_id: Annotated[
        int, typer.Argument(metavar="BROKER", min=0, help="The broker's id.", show_default=False)
    ],
    watch_seconds: Annotated[
        float,
        typer.Option("--watch-seconds", min=0, help="How long to watch what is written to it."),
    ] = 1.0,
    as_json: AsJson = False,
    bootstrap_server: BootstrapServer = None,
    timeout_ms: RequestTimeout = TIMEOUT_MS,
) -> None:
    """One broker: leaders, replicas, directories, traffic, what is not in sync."""
    from headwater.cli.brokers.description import describe

    on_cluster(
        bootstrap_server,
        lambda connection: describe(connection, broker_id, watch_seconds, as_json=as_json),
        timeout_ms=timeout_ms,
    )


def _rolling_restart(
    command: Annotated[
        str,
        typer.Option(
            "--command", metavar="COMMAND", help="What restarts a broker, with {id} or {host}."
        ),
    ],
    brokers: Annotated[
        str | None,
        typer.Option("--brokers", metavar="ID,...", help="Only these.", show_default="all"),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Only show what would be done, and what is against it."),
    ] = False,
    timeout: Annotated[
        str,
        typer.Option("--timeout", metavar="TIME", help="How long each broker may take at most."),
    ] = "10m",
    may_take_away: Annotated[
        bool,
        typer.Option(
            "--allow-unavailable",
            help="Go on where partitions have no other replica, or too few for acks=all.",
        ),
    ] = False,
    bootstrap_server: BootstrapServer = None,
    timeout_ms: RequestTimeout = TIMEOUT_MS,
) -> None:
    from headwater.cli.brokers.operator_command import OperatorCommand, filled_in, names_broker
    from headwater.cli.brokers.rolling_restart import (
        RestartOptions,
        RestartStoppedError,
        preview,
        restart_all,
    )

    broker_ids = None if brokers is None else _broker_ids(brokers)
    timeout_s = duration_ms(timeout, "--timeout") / 1000
    if not names_broker(command) and (broker_ids is None or len(broker_ids) > 1):
        raise typer.BadParameter(
            "it is the same for every broker: say which with {id} or {host}",
            param_hint="--command",
        )
    options = RestartOptions(broker_ids, timeout_s, may_take_away)

    async def restart(connection: ClusterConnection) -> None:
        import asyncio

        from headwater.cli.interruption import cancelled_by_signals

        if dry_run:
            lines = await preview(connection, lambda node: filled_in(command, node), options)
            print("\n".join(lines))
            return
        try:
            with cancelled_by_signals():
                await restart_all(connection, OperatorCommand(command, _tell), options, _tell)
        except asyncio.CancelledError:
            raise RestartStoppedError("The rolling restart was interrupted.") from None

    on_cluster(bootstrap_server, restart, timeout_ms=timeout_ms)


def _unregister(
    broker_id: Annotated[
        int, typer.Argument(metavar="BROKER", min=0, help="The broker's id.", show_default=False)
    ],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    bootstrap_server: BootstrapServer = None,
    timeout_ms: RequestTimeout = TIMEOUT_MS,
) -> None:
    """Forget a broker that was drained and stopped for good: its settings go."""
    from headwater.cli.brokers.unregistering import unregister

    on_cluster(
        bootstrap_server,
        lambda connection: unregister(connection, broker_id, is_sure=yes),
        timeout_ms=timeout_ms,
    )


def _tell(line: str) -> None:
    print(line, flush=True)


def _broker_ids(text: str) -> list[int]:
    ids = [each.strip() for each in text.split(",")]
    if not all(each.isascii() and each.isdecimal() for each in ids):
        raise typer.BadParameter(f"{text!r} should be like 1,2,3", param_hint="--brokers")
    return sorted({int(each) for each in ids})
