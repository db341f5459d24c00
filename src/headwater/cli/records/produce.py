"""`headwater produce`: write the lines of standard input to a topic."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Final

import typer

from headwater.base.counted import counted
from headwater.cli.options.choice import completed_by, one_of
from headwater.cli.options.cluster import BootstrapServer, bootstrap_servers, on_cluster
from headwater.cli.options.delay_times import (
    DelayOption,
    DeliverAtOption,
    given_delay,
    given_moment,
)
from headwater.cli.options.topic_argument import TopicArgument, TopicOption, one_topic

if TYPE_CHECKING:
    from headwater.client.producer.intake.delay_request import DelayArguments

app = typer.Typer(pretty_exceptions_enable=False)

COMPRESSIONS: Final = ("none", "gzip", "snappy", "lz4", "zstd")
ACKS: Final = ("all", "-1", "1", "0")
EXIT_FAILURE: Final = 1
EXIT_INTERRUPTED: Final = 130

HELP = """\
Write the lines of standard input to a topic, a record for each.

    echo hello | headwater produce orders

With keys, which decide the partition; key and value are separated by a tab, or as you say:

    headwater produce orders --property parse.key=true < lines.tsv

    headwater produce orders --property parse.key=true --property key.separator=:

With headers, some from each line and one for all:

    headwater produce orders --property parse.headers=true --header source=shop

To be delivered later, if the topic's delay.mode allows it; `headwater delay --help` tells more:

    echo hello | headwater produce orders --delay 30s

The exit code is 0 if every line was written; otherwise the first failure is told. \
At a terminal, Ctrl-D ends the input.
"""


@app.command(help=HELP)
def produce(
    topic: TopicArgument = None,
    topic_option: TopicOption = None,
    properties: Annotated[
        list[str] | None,
        typer.Option(
            "--property",
            "--reader-property",
            metavar="NAME=VALUE",
            help="How lines are read; may be repeated: parse.key, key.separator, parse.headers, "
            "headers.delimiter, headers.separator, headers.key.separator, null.marker, "
            "ignore.error.",
        ),
    ] = None,
    headers: Annotated[
        list[str] | None,
        typer.Option(
            "--header",
            "-H",
            metavar="NAME=VALUE",
            help="A header for every record; may be repeated.",
        ),
    ] = None,
    partition: Annotated[
        int | None,
        typer.Option(
            "--partition",
            min=0,
            help="Write to this partition only.",
            show_default="by key, or spread",
        ),
    ] = None,
    delay: DelayOption = None,
    deliver_at: DeliverAtOption = None,
    delay_id: Annotated[
        str | None,
        typer.Option(
            "--delay-id",
            metavar="ID",
            help="An id of yours for the delayed records, by which they can be cancelled.",
        ),
    ] = None,
    expire_at: Annotated[
        str | None,
        typer.Option(
            "--expire-at",
            metavar="TIME",
            help="From when on a delayed record is not delivered any more.",
        ),
    ] = None,
    acks: Annotated[
        str,
        typer.Option(
            "--acks",
            "--request-required-acks",
            metavar="all|1|0",
            help="Who must have a record before it counts as written: all in-sync replicas, "
            "the leader, or nobody.",
            autocompletion=completed_by(ACKS),
        ),
    ] = "all",
    compression: Annotated[
        str,
        typer.Option(
            "--compression-codec",
            metavar="CODEC",
            help=f"One of {', '.join(COMPRESSIONS)}.",
            autocompletion=completed_by(COMPRESSIONS),
        ),
    ] = "none",
    linger_ms: Annotated[
        int,
        typer.Option(
            "--timeout", metavar="MS", min=0, help="How long a batch waits for more lines."
        ),
    ] = 5,
    batch_size_bytes: Annotated[
        int,
        typer.Option(
            "--batch-size",
            "--max-partition-memory-bytes",
            metavar="BYTES",
            min=1,
            help="How large a batch may grow.",
        ),
    ] = 256 << 10,
    request_timeout_ms: Annotated[
        int,
        typer.Option(
            "--request-timeout-ms", metavar="MS", min=1, help="How long a request may take."
        ),
    ] = 30_000,
    delivery_timeout_ms: Annotated[
        int,
        typer.Option(
            "--delivery-timeout-ms",
            metavar="MS",
            min=1,
            help="How long to try to write a line before giving up.",
        ),
    ] = 120_000,
    max_block_ms: Annotated[
        int,
        typer.Option(
            "--max-block-ms", metavar="MS", min=1, help="How long to wait for a new topic."
        ),
    ] = 10_000,
    bootstrap_server: BootstrapServer = None,
) -> None:
    name = one_topic(topic, topic_option)
    one_of(acks, ACKS, "--acks")
    one_of(compression, COMPRESSIONS, "--compression-codec")
    from headwater.cli.records.line_format import LineFormat
    from headwater.cli.records.produce_action import ProduceOptions
    from headwater.cli.records.produce_action import produce as run

    options = ProduceOptions(
        topic=name,
        line_format=LineFormat(properties or []),
        partition=partition,
        headers=tuple(_parse_header(header) for header in headers or []),
        delay=_delay_arguments(delay, deliver_at, delay_id, expire_at),
        acks=acks,
        compression=compression,
        linger_ms=linger_ms,
        batch_size_bytes=batch_size_bytes,
        request_timeout_ms=request_timeout_ms,
        delivery_timeout_ms=delivery_timeout_ms,
        max_block_ms=max_block_ms,
    )
    # The producer has its own connections, and patience; a cluster that is not there is told now.
    report = on_cluster(
        bootstrap_server,
        lambda _: run(bootstrap_servers(bootstrap_server), options),
        timeout_ms=request_timeout_ms,
    )
    if sys.stderr.isatty():
        print(f"Wrote {counted(report.written_count, 'record')} to {name}.", file=sys.stderr)
    if report.failure is not None:
        lost = f" ({_not_written(report.failed_count)})" if report.failed_count else ""
        print(f"headwater: {report.failure}{lost}", file=sys.stderr)
        raise typer.Exit(EXIT_FAILURE)
    if report.was_interrupted:
        raise typer.Exit(EXIT_INTERRUPTED)


def _delay_arguments(
    delay: str | None, deliver_at: str | None, delay_id: str | None, expire_at: str | None
) -> DelayArguments:
    from headwater.client.message_id import sender_id_bytes

    if delay is None and deliver_at is None and delay_id is None and expire_at is None:
        return {}
    if delay is not None and deliver_at is not None:
        raise typer.BadParameter("give one of the two", param_hint="--delay and --deliver-at")
    for option, given in (("--delay-id", delay_id), ("--expire-at", expire_at)):
        if given is not None and delay is None and deliver_at is None:
            raise typer.BadParameter("it needs --delay or --deliver-at", param_hint=option)
    try:
        sender_id = None if delay_id is None else sender_id_bytes(delay_id)
    except ValueError as error:
        raise typer.BadParameter(str(error).removesuffix("."), param_hint="--delay-id") from None
    return {
        "delay": given_delay(delay, "--delay"),
        "deliver_at": given_moment(deliver_at, "--deliver-at"),
        "delay_id": sender_id,
        "expire_at": given_moment(expire_at, "--expire-at"),
    }


def _not_written(count: int) -> str:
    return f"{counted(count, 'record')} {'was' if count == 1 else 'were'} not written"


def _parse_header(text: str) -> tuple[str, bytes | None]:
    name, separator, value = text.partition("=")
    if not separator:
        raise typer.BadParameter(f"{text!r} should be NAME=VALUE", param_hint="--header")
    return name, value.encode(errors="surrogateescape")
