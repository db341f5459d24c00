"""`headwater get-offsets`: print the first, last or timely offsets of partitions."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Final

import typer

from headwater.cli.options.cluster import TIMEOUT_MS, BootstrapServer, RequestTimeout, on_cluster
from headwater.cli.options.topic_argument import TopicArgument, TopicOption, any_topic

if TYPE_CHECKING:
    from headwater.cli.options.partition_pattern import Accepts
    from headwater.client.connection.cluster_connection import ClusterConnection

app = typer.Typer(pretty_exceptions_enable=False)

EXIT_FAILURE: Final = 1
NO_OFFSET: Final = -1
TIMES: Final = {
    "latest": -1,
    "earliest": -2,
    "max-timestamp": -3,
    "earliest-local": -4,
    "latest-tiered": -5,
}

HELP = """\
Print offsets of partitions, one a line as topic:partition:offset.

The next offsets that will be written, and the oldest that are there:

    headwater get-offsets orders

    headwater get-offsets orders --time earliest

The first offsets since a moment, in milliseconds, of some partitions:

    headwater get-offsets --time 1767225600000 --topic-partitions orders:0-2,pay.*

A partition that has nothing so late is left out.
"""


@app.command(help=HELP)
def get_offsets(
    topic: TopicArgument = None,
    topic_option: TopicOption = None,
    time: Annotated[
        str,
        typer.Option(
            "--time",
            metavar="TIME",
            help="latest or -1, earliest or -2, max-timestamp or -3 (the newest record), "
            "or a timestamp in milliseconds.",
        ),
    ] = "latest",
    partitions: Annotated[
        str | None,
        typer.Option("--partitions", metavar="N,...", help="Only these.", show_default="all"),
    ] = None,
    topic_partitions: Annotated[
        str | None,
        typer.Option(
            "--topic-partitions",
            metavar="PATTERN,...",
            help="Topics and partitions in one: topic, topic:1, topic:0-3 (without 3), topic:5-.",
        ),
    ] = None,
    exclude_internal_topics: Annotated[
        bool,
        typer.Option(
            "--exclude-internal-topics", help="Leave out __consumer_offsets and its like."
        ),
    ] = False,
    bootstrap_server: BootstrapServer = None,
    timeout_ms: RequestTimeout = TIMEOUT_MS,
) -> None:
    name = any_topic(topic, topic_option)
    if topic_partitions is not None and (name is not None or partitions is not None):
        raise typer.BadParameter(
            "it names topics and partitions itself", param_hint="--topic-partitions"
        )
    from headwater.cli.options.partition_pattern import (
        accept_topics_and_numbers,
        parse_partition_patterns,
    )

    if topic_partitions is not None:
        accepts = parse_partition_patterns(topic_partitions)
    else:
        accepts = accept_topics_and_numbers(name, partitions)
    moment = _parse_time(time)
    failed = on_cluster(
        bootstrap_server,
        lambda connection: _print_offsets(connection, accepts, moment, exclude_internal_topics),
        timeout_ms=timeout_ms,
    )
    if failed:
        raise typer.Exit(EXIT_FAILURE)


async def _print_offsets(
    connection: ClusterConnection, accepts: Accepts, time: int, exclude_internal: bool
) -> bool:
    """Print what is found; whether something went wrong."""
    from headwater.base.errors import KafkaError
    from headwater.base.ids import TopicPartition
    from headwater.client.admin import OffsetOperations, TopicOperations
    from headwater.client.errors import UnknownTopicError

    known = (
        TopicPartition(topic.name, partition.partition)
        for topic in await TopicOperations(connection).list_topics()
        if not (exclude_internal and topic.is_internal)
        for partition in topic.partitions
    )
    chosen = sorted(filter(accepts, known))
    if not chosen:
        raise UnknownTopicError("No partition matches.")
    has_failed = False
    outcomes = await OffsetOperations(connection).list_offsets(dict.fromkeys(chosen, time))
    for key, outcome in outcomes.items():
        if isinstance(outcome, KafkaError):
            has_failed = True
            print(f"headwater: {outcome}", file=sys.stderr)
        elif outcome.offset != NO_OFFSET:
            print(f"{key.topic}:{key.partition}:{outcome.offset}")
    return has_failed


def _parse_time(text: str) -> int:
    if text in TIMES:
        return TIMES[text]
    try:
        time = int(text)
    except ValueError:
        time = min(TIMES.values()) - 1
    if time < min(TIMES.values()):
        raise typer.BadParameter(
            f"{text!r} is no timestamp and none of {', '.join(TIMES)}", param_hint="--time"
        )
    return time
