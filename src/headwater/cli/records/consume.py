"""`headwater consume`: print the records of topics."""

from __future__ import annotations

import sys
from typing import Annotated, Final

import typer

from headwater.cli.options.choice import completed_by, one_of
from headwater.cli.options.cluster import (
    TIMEOUT_MS,
    BootstrapServer,
    RequestTimeout,
    bootstrap_servers,
    on_cluster,
)
from headwater.cli.options.cluster_names import complete_groups
from headwater.cli.options.topic_argument import TopicArgument, TopicOption, any_topic
from headwater.cli.records.formatter_option import DEFAULT, NAMES, parse_formatter, stored_format
from headwater.cli.records.membership_option import parse_membership

app = typer.Typer(pretty_exceptions_enable=False)

ISOLATION_LEVELS: Final = ("read_uncommitted", "read_committed")

HELP = """\
Print the records of topics: those that come from now on, or from where you say.

    headwater consume orders --from-beginning

Every record as JSON, up to the first ten since this morning:

    headwater consume orders --from-datetime 2026-01-31T06:00 --max-messages 10 --json

With keys and more, as Kafka's console consumer prints them:

    headwater consume orders --property print.key=true --property print.offset=true

From one offset of one partition, until nothing comes for a second:

    headwater consume orders --partition 0 --offset 42 --timeout-ms 1000

What a consumer group has committed, as it stands in the partition of its coordinator:

    headwater consume __consumer_offsets --partition 20 --formatter offsets --from-beginning

As a member of a consumer group, which goes on where it was the last time:

    headwater consume orders --group auditors --from-beginning

The group commits what was printed, at the end and every few seconds; --from-beginning only counts \
for a group that has committed nothing yet. Without --group no group is joined and nothing is \
committed. Ctrl-C ends it.
"""


@app.command(help=HELP)
def consume(
    topic: TopicArgument = None,
    topic_option: TopicOption = None,
    group: Annotated[
        str | None,
        typer.Option(
            "--group",
            metavar="GROUP",
            help="Join this group, go on where it was, and commit what was printed.",
            autocompletion=complete_groups,
        ),
    ] = None,
    no_commit: Annotated[
        bool, typer.Option("--no-commit", help="With --group: leave its offsets as they are.")
    ] = False,
    include: Annotated[
        str | None,
        typer.Option(
            "--include",
            metavar="REGEX",
            help="Instead of a topic: all topics whose whole names match.",
        ),
    ] = None,
    partition: Annotated[
        int | None,
        typer.Option("--partition", min=0, help="Only this partition.", show_default="all"),
    ] = None,
    offset: Annotated[
        str | None,
        typer.Option(
            "--offset",
            metavar="N|earliest|latest",
            help="Where to start.",
            show_default="latest",
        ),
    ] = None,
    from_beginning: Annotated[
        bool,
        typer.Option(
            "--from-beginning",
            help="Start with the oldest records; with --group, where it has no offsets.",
        ),
    ] = False,
    from_datetime: Annotated[
        str | None,
        typer.Option(
            "--from-datetime",
            metavar="TIME",
            help="Start with the first records since then, as in 2026-01-31T12:00:00Z.",
        ),
    ] = None,
    max_messages: Annotated[
        int | None,
        typer.Option("--max-messages", "-n", min=0, help="Stop after this many records."),
    ] = None,
    timeout_ms: Annotated[
        int | None,
        typer.Option(
            "--timeout-ms", metavar="MS", min=0, help="Stop when nothing comes for this long."
        ),
    ] = None,
    isolation_level: Annotated[
        str,
        typer.Option(
            "--isolation-level",
            metavar="LEVEL",
            help="read_committed leaves out transactions that are open or were aborted.",
            autocompletion=completed_by(ISOLATION_LEVELS),
        ),
    ] = "read_uncommitted",
    properties: Annotated[
        list[str] | None,
        typer.Option(
            "--property",
            "--formatter-property",
            metavar="NAME=VALUE",
            help="How records are printed; may be repeated: print.timestamp, print.partition, "
            "print.offset, print.epoch, print.headers, print.key, print.value, key.separator, "
            "line.separator, headers.separator, null.literal.",
        ),
    ] = None,
    formatter: Annotated[
        str,
        typer.Option(
            "--formatter",
            metavar="NAME",
            help=f"What the records are: {', '.join(NAMES)}; or one of Kafka's classes.",
            autocompletion=completed_by(NAMES),
        ),
    ] = DEFAULT,
    consumer_properties: Annotated[
        list[str] | None,
        typer.Option(
            "--consumer-property",
            "--command-property",
            metavar="NAME=VALUE",
            help="A setting of the consumer, as in docs/client-settings.md; may be repeated.",
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print a JSON object for each record, for programs.")
    ] = False,
    bootstrap_server: BootstrapServer = None,
    request_timeout_ms: RequestTimeout = TIMEOUT_MS,
) -> None:
    name = any_topic(topic, topic_option)
    if (name is None) == (include is None):
        raise typer.BadParameter("name a topic, or topics by --include", param_hint="TOPIC")
    one_of(isolation_level, ISOLATION_LEVELS, "--isolation-level")
    form = parse_formatter(formatter)
    if form != DEFAULT and properties:
        raise typer.BadParameter("this formatter has no properties", param_hint="--property")
    if as_json and properties:
        raise typer.BadParameter("JSON always has all fields", param_hint="--property")
    from headwater.cli.records.consume_action import ConsumeOptions, Consumption
    from headwater.cli.records.record_format import FormatRecords, JsonFormat, TextFormat
    from headwater.cli.records.start_offsets import parse_start
    from headwater.client.connection.cluster_connection import ClusterConnection
    from headwater.client.fetch.isolation import IsolationLevel

    start = parse_start(offset, from_beginning, from_datetime)
    if start.offset is not None and partition is None:
        raise typer.BadParameter("say which partition the offset is in", param_hint="--partition")
    membership = parse_membership(
        group, consumer_properties or [], from_beginning=from_beginning, commits=not no_commit
    )
    own_start = [
        option
        for option, value in (
            ("--partition", partition),
            ("--offset", offset),
            ("--from-datetime", from_datetime),
        )
        if value is not None
    ]
    if membership.group_id is not None and own_start:
        raise typer.BadParameter(
            f"a group decides itself what it reads: leave out {own_start[0]}", param_hint="--group"
        )
    plain: FormatRecords = JsonFormat() if as_json else TextFormat(properties or [])

    async def run(connection: ClusterConnection) -> int:
        if form == DEFAULT:
            format_records = plain
        else:
            format_records = await stored_format(form, connection, as_json=as_json)
        options = ConsumeOptions(
            topic=name,
            pattern=include,
            partition=partition,
            start=start,
            max_messages=max_messages,
            timeout_ms=timeout_ms,
            isolation_level=IsolationLevel[isolation_level.upper()],
            format_records=format_records,
            membership=membership,
        )
        consumption = Consumption(connection, bootstrap_servers(bootstrap_server), options)
        await consumption.run()
        return consumption.count

    count = on_cluster(bootstrap_server, run, timeout_ms=request_timeout_ms)
    print(f"Processed a total of {count} messages", file=sys.stderr)
