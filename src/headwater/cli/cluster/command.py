"""`headwater cluster`: see at a glance how a cluster is, once or all the time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import typer

from headwater.cli.options.cluster import BootstrapServer, RequestTimeout, on_cluster
from headwater.cli.options.duration import duration_ms
from headwater.cli.options.json_option import AsJson

if TYPE_CHECKING:
    from headwater.client.connection.cluster_connection import ClusterConnection

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)

#: Something is offline, under-replicated or missing. 1 is a failure to find out.
EXIT_UNHEALTHY: Final = 3
_TIMEOUT_MS: Final = 10_000

HELP = """\
How a cluster is: its brokers, partitions, moves and groups.

    headwater cluster status

    headwater cluster status --watch --interval 5s

A broker that holds replicas and is not there is `missing`; `silent` is one that does not answer. \
LEADERS and PREFERRED are how many partitions a broker leads, and how many it is meant to lead. \
WRITTEN is what producers write to it, which shows from the second look on. What a cluster does \
not tell is a dash, so it works with any Kafka.

The exit code is 0 if all is well, and 3 if a broker is missing, or a partition offline or \
under-replicated.
"""


@app.callback(help=HELP)
def _cluster() -> None:
    pass


@app.command("status")
def status(
    is_watched: Annotated[
        bool, typer.Option("--watch", "-w", help="Look again and again, until Ctrl-C.")
    ] = False,
    interval: Annotated[
        str, typer.Option("--interval", metavar="TIME", help="How long between looks: 2s, 1m.")
    ] = "2s",
    look_count: Annotated[
        int | None,
        typer.Option("--count", metavar="N", min=1, help="With --watch, end after so many looks."),
    ] = None,
    as_json: AsJson = False,
    bootstrap_server: BootstrapServer = None,
    timeout_ms: RequestTimeout = _TIMEOUT_MS,
) -> None:
    """Brokers, controller, leaders, replicas in sync, moves, disks, traffic, lag."""
    interval_s = duration_ms(interval, "--interval") / 1000
    if look_count is not None and not is_watched:
        raise typer.BadParameter("it counts looks of --watch", param_hint="--count")

    async def look(connection: ClusterConnection) -> bool:
        from headwater.cli.cluster.survey import Surveyor

        surveyor = Surveyor(connection)
        if is_watched:
            from headwater.cli.cluster.watching import watch

            return await watch(surveyor, interval_s, look_count, as_json=as_json)
        status = await surveyor.look()
        if as_json:
            from headwater.cli.cluster.document import status_document
            from headwater.cli.output.json_document import print_document

            print_document(status_document(status))
        else:
            from headwater.cli.cluster.report import status_lines

            for line in status_lines(status):
                print(line)
        return status.is_healthy

    if not on_cluster(bootstrap_server, look, timeout_ms=timeout_ms):
        raise typer.Exit(EXIT_UNHEALTHY)
