"""`headwater delay-service`: forward records when the time of their level is over."""

from __future__ import annotations

import sys
import uuid
from typing import Annotated, Final

import typer

from headwater.cli.delay_service.arguments import service_properties
from headwater.cli.options.cluster import BootstrapServer, bootstrap_servers
from headwater.cli.options.duration import duration_ms
from headwater.cli.options.json_option import RowsAsJson
from headwater.client.producer.delay_levels import LEVELS_TEXT, Level, parse_levels

app = typer.Typer(pretty_exceptions_enable=False)

#: As in `delivery.delay_service.options`, which `--help` does without.
_GROUP: Final = "headwater-delay-service"
_WAITING_MAX: Final = 10_000
_WAITING_BYTES_MAX: Final = 32 << 20

HELP = """\
Forward records when the time of their level is over: delayed messages for any Kafka.

There is a topic for each level, such as __delay_30s. What is written there waits for 30 seconds \
and then goes to the topic that its header headwater-topic names, with its key, its value and its \
other headers. Any client can write it:

    echo pay | kcat -b localhost -P -t __delay_30s -H headwater-topic=orders

The service creates the topics that are missing. Run one beside each broker: they share the work, \
and each takes over from one that fails. A consumer of orders that reads committed data only \
(isolation.level=read_committed) sees each record once, and none early:

    headwater delay-service --bootstrap-server 127.0.0.1:9092

    headwater delay-service --levels 1s,15s,1m,1h --partitions 6

What names no topic that there is goes to __delay_dead, with the reason in a header. Ctrl-C ends \
the service after what it is doing; nothing is lost by killing it either.
"""


@app.command(help=HELP)
def delay_service(
    bootstrap_server: BootstrapServer = None,
    levels: Annotated[
        str,
        typer.Option(
            "--levels",
            metavar="DELAY,...",
            help="The delays that there are, rising: 250ms, 30s, 5m, 2h.",
        ),
    ] = LEVELS_TEXT,
    group: Annotated[
        str,
        typer.Option(
            "--group",
            metavar="NAME",
            help="What the services of a cluster have in common. Their consumer groups are called "
            "so, with a dash and the level.",
        ),
    ] = _GROUP,
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
    waiting_max: Annotated[
        int,
        typer.Option(
            "--max-waiting-per-partition",
            metavar="N",
            min=1,
            help="Records of a partition in memory, above which fetching it pauses.",
        ),
    ] = _WAITING_MAX,
    waiting_bytes_max: Annotated[
        int,
        typer.Option(
            "--max-waiting-bytes",
            metavar="BYTES",
            min=1,
            help="The same in bytes, for a whole level: its partitions share them evenly.",
        ),
    ] = _WAITING_BYTES_MAX,
    partitions: Annotated[
        int,
        typer.Option(
            "--partitions",
            metavar="N",
            help="Of level topics that it creates.",
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
    as_json: RowsAsJson = False,
    stop_with_stdin: Annotated[
        bool,
        typer.Option("--stop-with-stdin", hidden=True, help="Stop when standard input ends."),
    ] = False,
) -> None:
    given_levels = _levels(levels)
    interval_ms = duration_ms(report_interval, "--report-interval")
    for count, name in ((partitions, "--partitions"), (replication_factor, "--replication-factor")):
        if count != -1 and count < 1:
            raise typer.BadParameter(f"{count} is less than 1", param_hint=name)
    producer_settings = service_properties(producer_property, "--producer-property")
    consumer_settings = service_properties(consumer_property, "--consumer-property")
    from headwater.cli.delay_service.process import ServiceProcess, serve
    from headwater.delivery.delay_service.options import ServiceOptions
    from headwater.delivery.delay_service.service import DelayService

    options = ServiceOptions(
        bootstrap_servers(bootstrap_server),
        instance or uuid.uuid4().hex,
        given_levels,
        group,
        waiting_max,
        waiting_bytes_max,
        partitions,
        replication_factor,
        create,
        consumer_settings,
        producer_settings,
    )
    names = " ".join(level.name for level in given_levels)
    greeting = (
        f"The delay service is ready: {options.bootstrap_servers} (levels {names}; group "
        f"{options.group}, instance {options.instance})"
    )
    until_end_of = sys.stdin.fileno() if stop_with_stdin else None
    serve(
        ServiceProcess(
            *(DelayService(options), greeting, interval_ms / 1000),
            as_json=as_json,
            until_end_of=until_end_of,
        )
    )


def _levels(text: str) -> tuple[Level, ...]:
    try:
        return parse_levels(text)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--levels") from None
