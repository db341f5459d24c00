"""`headwater audit ids`: its options."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, Final

import typer

from headwater.cli.options.cluster import (
    TIMEOUT_MS,
    BootstrapServer,
    RequestTimeout,
    bootstrap_servers,
    on_cluster,
)
from headwater.cli.options.cluster_names import complete_topics
from headwater.cli.options.delay_times import given_delay
from headwater.cli.options.json_option import AsJson
from headwater.cli.output.standard_output import standard_output

if TYPE_CHECKING:
    from headwater.client.connection.cluster_connection import ClusterConnection
    from headwater.delivery.audit.topic_ids import TopicStretch

#: When something is missing or came twice.
_EXIT_ALARM: Final = 3

HELP = """\
Tell exactly which records are missing and which came twice, by the ids that producers gave them.

    headwater audit ids orders --last 1h

    headwater audit ids orders --against orders-copy

    headwater audit ids orders --lake ./lake --grace 10m

Producers give ids with audit.ids.enable=true, or by an interceptor of a few lines. The exit code \
is 3 if something is missing or came twice.
"""


def ids(
    topic: Annotated[
        str, typer.Argument(metavar="TOPIC", help="The topic.", autocompletion=complete_topics)
    ],
    last: Annotated[
        str | None,
        typer.Option(
            "--last", metavar="TIME", help="Records of how long ago count.", show_default="1h"
        ),
    ] = None,
    from_beginning: Annotated[
        bool, typer.Option("--from-beginning", help="All records count that are there.")
    ] = False,
    against: Annotated[
        str | None,
        typer.Option("--against", metavar="TOPIC", help="Compare with a copy of the topic."),
    ] = None,
    lake: Annotated[
        str | None,
        typer.Option("--lake", metavar="DIR", help="Compare with a lake table that archives it."),
    ] = None,
    grace: Annotated[
        str,
        typer.Option("--grace", metavar="TIME", help="What is younger may still be on its way."),
    ] = "10s",
    as_json: AsJson = False,
    bootstrap_server: BootstrapServer = None,
    timeout_ms: RequestTimeout = TIMEOUT_MS,
) -> None:
    if last is not None and from_beginning:
        raise typer.BadParameter("give it or --from-beginning, not both", param_hint="--last")
    if against is not None and lake is not None:
        raise typer.BadParameter("give it or --lake, not both", param_hint="--against")
    last_ms = None if from_beginning else given_delay(last or "1h", "--last")
    grace_ms = given_delay(grace, "--grace") or 0

    from headwater.cli.audit.ids.reading import AskedIds, make_report
    from headwater.cli.audit.ids.tables import print_report

    def ask(action: Callable[[ClusterConnection], Awaitable[TopicStretch]]) -> TopicStretch:
        return on_cluster(bootstrap_server, action, timeout_ms=timeout_ms)

    asked = AskedIds(topic, last_ms, grace_ms, against, lake)
    with standard_output():
        report = make_report(asked, bootstrap_servers(bootstrap_server), ask)
        print_report(report, as_json=as_json)
    if report.alarms:
        raise typer.Exit(_EXIT_ALARM)
