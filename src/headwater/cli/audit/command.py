"""`headwater audit`: whether records are lost, doubled or late between producers and groups."""

from __future__ import annotations

from typing import Annotated

import typer

from headwater.cli.audit.canary.command import HELP as CANARY_HELP
from headwater.cli.audit.canary.command import canary
from headwater.cli.audit.ids.command import HELP as IDS_HELP
from headwater.cli.audit.ids.command import ids
from headwater.cli.audit.replicas.command import HELP as REPLICAS_HELP
from headwater.cli.audit.replicas.command import replicas
from headwater.cli.audit.watch.command import HELP as WATCH_HELP
from headwater.cli.audit.watch.command import watch
from headwater.cli.options.cluster import (
    TIMEOUT_MS,
    BootstrapServer,
    RequestTimeout,
    bootstrap_servers,
    on_cluster,
)
from headwater.cli.options.cluster_names import complete_topics
from headwater.cli.options.json_option import AsJson

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)

#: When there is something that somebody should look at.
EXIT_ALARM = 3

HELP = """\
Tell whether records are lost, doubled or late between producers, brokers and groups.

    headwater audit topic orders --last 1h

Brokers count what they store, by the time that records carry, and what groups commit; no client \
has to help. A command that finds something wrong ends with exit code 3.
"""


@app.callback(help=HELP)
def _audit() -> None:
    pass


app.command("canary", help=CANARY_HELP)(canary)
app.command("watch", help=WATCH_HELP)(watch)
app.command("replicas", help=REPLICAS_HELP)(replicas)
app.command("ids", help=IDS_HELP)(ids)


@app.command("topic")
def topic(
    name: Annotated[
        str, typer.Argument(metavar="TOPIC", help="The topic.", autocompletion=complete_topics)
    ],
    last: Annotated[
        str,
        typer.Option("--last", metavar="TIME", help="Records of how long ago count, such as 30m."),
    ] = "1h",
    group: Annotated[
        str | None, typer.Option("--group", metavar="GROUP", help="Only what this group has read.")
    ] = None,
    by_bucket: Annotated[
        bool, typer.Option("--buckets", help="Also print what came with each bucket of time.")
    ] = False,
    as_json: AsJson = False,
    bootstrap_server: BootstrapServer = None,
    timeout_ms: RequestTimeout = TIMEOUT_MS,
) -> None:
    """Print what came in, what is stored, and per group what was read, missing, doubled, late."""
    from headwater.cli.audit import actions, tables
    from headwater.cli.options.delay_times import given_delay

    last_ms = given_delay(last, "--last") or 0
    servers = bootstrap_servers(bootstrap_server)
    asked = actions.AskedBook(name, last_ms, group)
    book, stages = on_cluster(
        bootstrap_server,
        lambda connection: actions.read_book(connection, servers, asked),
        timeout_ms=timeout_ms,
    )
    tables.print_book(book, last_ms, stages, by_bucket=by_bucket, as_json=as_json)
    if group is not None and not book.groups:
        typer.echo(f"Group '{group}' has committed nothing for {name} in that time.", err=True)
    if book.alarms:
        raise typer.Exit(EXIT_ALARM)
