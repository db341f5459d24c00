"""`headwater retry-service`: retries and dead letters of a group, on any Kafka."""

from __future__ import annotations

import sys
import uuid
from typing import Annotated

import typer

from headwater.cli.delay_service.arguments import service_properties
from headwater.cli.options.cluster import BootstrapServer, bootstrap_servers
from headwater.cli.options.cluster_names import complete_groups
from headwater.cli.options.duration import duration_ms
from headwater.cli.options.json_option import RowsAsJson

app = typer.Typer(pretty_exceptions_enable=False)

HELP = """\
Keep what a consumer group cannot handle, on brokers that have no retry topics.

A consumer of the group billing that fails produces its record to retry.billing. The service \
counts, has it wait in a topic of the delay service, and puts it into retry.billing.ready, which \
the group reads too; after its last attempt it goes to dlq.billing:

    headwater retry-service billing --delays 5s,10s,30s

It creates the topics that are missing. Run as many as you like: they share the work, and each \
takes over from one that fails. Whoever reads committed data only (isolation.level=read_committed) \
sees each record once each time, and none early. Brokers of Headwater do all of this by \
themselves: headwater retry enable.
"""


@app.command(help=HELP)
def retry_service(
    group: Annotated[
        str,
        typer.Argument(metavar="GROUP", help="The consumer group.", autocompletion=complete_groups),
    ],
    delays: Annotated[
        str, typer.Option("--delays", metavar="TIME,...", help="How long to wait, by attempt.")
    ] = "5s,10s,30s,1m,2m",
    attempts: Annotated[
        int,
        typer.Option(
            "--attempts",
            min=0,
            help="How often a record is shown again.",
            show_default="once for each of --delays",
        ),
    ] = 0,
    dead_letter_topic: Annotated[
        str | None,
        typer.Option(
            "--dead-letter-topic",
            metavar="TOPIC",
            help="Where records go that are given up.",
            show_default="dlq.GROUP",
        ),
    ] = None,
    instance: Annotated[
        str | None,
        typer.Option(
            "--instance",
            metavar="NAME",
            help="What this service has for itself. If it is the same after a restart, what the "
            "last one left open is settled at once.",
            show_default="random",
        ),
    ] = None,
    partitions: Annotated[
        int,
        typer.Option(
            "--partitions",
            metavar="N",
            help="Of topics that it creates.",
            show_default="the brokers' default",
        ),
    ] = -1,
    replication_factor: Annotated[
        int,
        typer.Option(
            "--replication-factor",
            metavar="N",
            help="Of topics that it creates.",
            show_default="the brokers' default",
        ),
    ] = -1,
    create: Annotated[
        bool,
        typer.Option(
            "--create/--no-create", help="Whether it creates topics that are missing, or fails."
        ),
    ] = True,
    producer_property: Annotated[
        list[str] | None,
        typer.Option(
            "--producer-property",
            metavar="NAME=VALUE",
            help="A setting of what sends; may be repeated.",
        ),
    ] = None,
    consumer_property: Annotated[
        list[str] | None,
        typer.Option(
            "--consumer-property",
            metavar="NAME=VALUE",
            help="A setting of what fetches; may be repeated.",
        ),
    ] = None,
    report_interval: Annotated[
        str,
        typer.Option(
            "--report-interval", metavar="DELAY", help="How often it tells how late it is."
        ),
    ] = "1m",
    bootstrap_server: BootstrapServer = None,
    as_json: RowsAsJson = False,
    stop_with_stdin: Annotated[
        bool,
        typer.Option("--stop-with-stdin", hidden=True, help="Stop when standard input ends."),
    ] = False,
) -> None:
    from headwater.cli.delay_service.process import ServiceProcess, serve
    from headwater.delivery.delay_service.options import ServiceOptions
    from headwater.delivery.retry_service.options import RetryServiceOptions, levels_of
    from headwater.delivery.retry_service.service import RetryService
    from headwater.delivery.worker.policy import RetryPolicy
    from headwater.wire.delayed import retry_topics

    try:
        policy = RetryPolicy([each.strip() for each in delays.split(",") if each.strip()], attempts)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--delays") from None
    interval_ms = duration_ms(report_interval, "--report-interval")
    for count, name in ((partitions, "--partitions"), (replication_factor, "--replication-factor")):
        if count != -1 and count < 1:
            raise typer.BadParameter(f"{count} is less than 1", param_hint=name)
    waiting = ServiceOptions(
        bootstrap_servers(bootstrap_server),
        instance or uuid.uuid4().hex,
        levels_of(policy),
        partition_count=partitions,
        replication_factor=replication_factor,
        creates_topics=create,
        consumer_settings=service_properties(consumer_property, "--consumer-property"),
        producer_settings=service_properties(producer_property, "--producer-property"),
    )
    dead_topic = dead_letter_topic or retry_topics.dead_letter_topic(group)
    options = RetryServiceOptions(group, policy, dead_topic, waiting)
    greeting = (
        f"The retry service of {group} is ready: {waiting.bootstrap_servers} "
        f"({retry_topics.retry_topic(group)} to {retry_topics.ready_topic(group)}, after "
        f"{policy.attempts_max} attempts to {dead_topic}; instance {waiting.instance})"
    )
    until_end_of = sys.stdin.fileno() if stop_with_stdin else None
    serve(
        ServiceProcess(
            *(RetryService(options), greeting, interval_ms / 1000),
            as_json=as_json,
            until_end_of=until_end_of,
        )
    )
