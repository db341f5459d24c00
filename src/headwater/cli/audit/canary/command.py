"""`headwater audit canary`: its options."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from headwater.cli.audit.metrics_page import MetricsListen, given_address
from headwater.cli.options.cluster import BootstrapServer, bootstrap_servers, on_cluster
from headwater.cli.options.delay_times import given_delay
from headwater.cli.options.json_option import AsJson

if TYPE_CHECKING:
    from headwater.client.connection.cluster_connection import ClusterConnection

CANARY_TOPIC = "__audit_canary"
#: When something was lost or doubled.
EXIT_WRONG = 3

HELP = """\
Send small records of its own through every broker, read them back, and tell what became of them.

    headwater audit canary --for 1m

    headwater audit canary --interval 200ms --report 1m --metrics-listen 127.0.0.1:9410

The topic is made with a partition that each broker leads, and grows when brokers come. A record \
that has not come is late, however long it takes; it is lost when the reader has gone past it. \
The exit code is 3 if a record was lost or doubled, and 1 if one could not be sent or is not back.
"""


def canary(
    interval: Annotated[
        str,
        typer.Option("--interval", metavar="TIME", help="How long from a record to the next."),
    ] = "1s",
    for_time: Annotated[
        str | None,
        typer.Option(
            "--for", metavar="TIME", help="How long to send.", show_default="until it is stopped"
        ),
    ] = None,
    count: Annotated[
        int | None,
        typer.Option(
            "--count",
            metavar="N",
            min=1,
            help="How many records to send through each broker.",
            show_default="until it is stopped",
        ),
    ] = None,
    report: Annotated[
        str, typer.Option("--report", metavar="TIME", help="How often to print the figures.")
    ] = "10s",
    late_after: Annotated[
        str,
        typer.Option("--late-after", metavar="TIME", help="When a round trip counts as late."),
    ] = "10s",
    wait: Annotated[
        str,
        typer.Option(
            "--wait", metavar="TIME", help="How long to wait in the end for what is under way."
        ),
    ] = "30s",
    topic: Annotated[
        str, typer.Option("--topic", metavar="TOPIC", help="The topic; it is made if need be.")
    ] = CANARY_TOPIC,
    metrics_listen: MetricsListen = None,
    as_json: AsJson = False,
    bootstrap_server: BootstrapServer = None,
) -> None:
    from headwater.cli.audit.canary.canary import CanaryOptions
    from headwater.cli.audit.canary.process import CanaryProcess
    from headwater.cli.audit.canary.report import last_words

    for_ms = given_delay(for_time, "--for")
    options = CanaryOptions(
        topic,
        interval_s=_seconds(interval, "--interval"),
        round_count=count,
        for_s=None if for_ms is None else for_ms / 1000,
        wait_s=(given_delay(wait, "--wait") or 0) / 1000,
    )
    process = CanaryProcess(
        bootstrap_servers(bootstrap_server),
        options,
        report_s=_seconds(report, "--report"),
        late_s=_seconds(late_after, "--late-after"),
        address=given_address(metrics_listen),
        as_json=as_json,
    )

    async def run(connection: ClusterConnection) -> None:
        await process.run(connection)

    on_cluster(bootstrap_server, run)
    # If it was stopped, nobody has waited for what was under way.
    words = last_words(process.figures, was_waited_for=not process.was_stopped)
    for sentence in words:
        typer.echo(sentence, err=as_json)
    if process.has_wrong:
        raise typer.Exit(EXIT_WRONG)
    if words:
        raise typer.Exit(1)


def _seconds(text: str, option: str) -> float:
    """A length of time that is more than none."""
    length_ms = given_delay(text, option)
    if not length_ms:
        raise typer.BadParameter("it must be more than 0", param_hint=option)
    return length_ms / 1000
