"""`headwater get-offsets`: print the first or next offsets of partitions, or those of a time."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple

import typer

from headwater.cli.options.choice import completed_by, did_you_mean
from headwater.cli.options.cluster import TIMEOUT_MS, BootstrapServer, RequestTimeout, on_cluster
from headwater.cli.options.json_option import AsJson
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
Print offsets of partitions, each on a line of its own as topic:partition:offset.

The offsets that the next records will get, and those of the oldest records:

    headwater get-offsets orders

    headwater get-offsets orders --time earliest

The first offsets since a moment, in milliseconds since 1970, of some partitions:

    headwater get-offsets --time 1767225600000 --topic-partitions orders:0-2,pay.*

A partition without a record that late is left out.
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
            "or a timestamp in milliseconds since 1970.",
            autocompletion=completed_by(TIMES),
        ),
    ] = "latest",
    partitions: Annotated[
        str | None,
        typer.Option(
            "--partitions", metavar="N,...", help="Only these partitions.", show_default="all"
        ),
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
            "--exclude-internal-topics",
            help="Leave out internal topics such as __consumer_offsets.",
        ),
    ] = False,
    as_json: AsJson = False,
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
    search = Search(accepts, _parse_time(time), name or topic_partitions, exclude_internal_topics)
    failed = on_cluster(
        bootstrap_server,
        lambda connection: _print_offsets(connection, search, as_json=as_json),
        timeout_ms=timeout_ms,
    )
    if failed:
        raise typer.Exit(EXIT_FAILURE)


class Search(NamedTuple):
    """Which partitions, by a test and as they were named, and which of their offsets."""

    accepts: Accepts
    time: int
    named: str | None
    exclude_internal: bool


async def _print_offsets(connection: ClusterConnection, search: Search, *, as_json: bool) -> bool:
    """Print what is found; whether something went wrong."""
    from headwater.base.errors import KafkaError
    from headwater.base.ids import TopicPartition
    from headwater.cli.output.json_document import failure_fields, print_document
    from headwater.client.admin import OffsetOperations, TopicOperations
    from headwater.client.errors import UnknownTopicError

    topics = [
        topic
        for topic in await TopicOperations(connection).list_topics()
        if not (search.exclude_internal and topic.is_internal)
    ]
    known = (
        TopicPartition(topic.name, partition.partition)
        for topic in topics
        for partition in topic.partitions
    )
    chosen = sorted(filter(search.accepts, known))
    if not chosen:
        named = search.named or "what was asked for"
        hint = did_you_mean(named, [topic.name for topic in topics]) or "."
        raise UnknownTopicError(f"No partition matches {named!r}{hint}")
    outcomes = await OffsetOperations(connection).list_offsets(dict.fromkeys(chosen, search.time))
    entries: list[dict[str, object]] = []
    has_failed = False
    for key, outcome in outcomes.items():
        place = {"topic": key.topic, "partition": key.partition}
        if isinstance(outcome, KafkaError):
            has_failed = True
            entries.append(place | failure_fields(outcome))
            print(f"headwater: {outcome}", file=sys.stderr)
        elif outcome.offset != NO_OFFSET:
            timestamp_ms = outcome.timestamp_ms if outcome.timestamp_ms >= 0 else None
            entries.append(place | {"offset": outcome.offset, "timestamp_ms": timestamp_ms})
            if not as_json:
                print(f"{key.topic}:{key.partition}:{outcome.offset}")
    if as_json:
        print_document({"offsets": entries})
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
            f"{text!r} is neither a timestamp nor one of {', '.join(TIMES)}", param_hint="--time"
        )
    return time
