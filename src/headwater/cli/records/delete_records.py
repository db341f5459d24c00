"""`headwater delete-records`: delete the records of partitions that are before an offset."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from headwater.cli.options.cluster import TIMEOUT_MS, BootstrapServer, RequestTimeout, on_cluster
from headwater.cli.options.json_option import AsJson
from headwater.cli.options.topic_argument import TopicArgument, TopicOption, any_topic

if TYPE_CHECKING:
    from headwater.base.ids import TopicPartition
    from headwater.client.connection.cluster_connection import ClusterConnection

app = typer.Typer(pretty_exceptions_enable=False)

EXIT_FAILURE: Final = 1
FILE_VERSION: Final = 1

HELP = """\
Delete the records of partitions that come before an offset. They cannot be brought back.

Everything before offset 1000 of partition 0, or everything that the partition holds:

    headwater delete-records orders --partition 0 --offset 1000

    headwater delete-records orders --partition 0 --offset -1

Several partitions, by a file as Kafka's kafka-delete-records.sh takes it:

    headwater delete-records --offset-json-file offsets.json

    {"version": 1, "partitions": [{"topic": "orders", "partition": 0, "offset": 1000}]}
"""


@app.command(help=HELP)
def delete_records(
    topic: TopicArgument = None,
    topic_option: TopicOption = None,
    partition: Annotated[
        int | None, typer.Option("--partition", min=0, help="The partition.")
    ] = None,
    offset: Annotated[
        int | None,
        typer.Option("--offset", min=-1, help="The first offset to keep; -1 deletes everything."),
    ] = None,
    offset_json_file: Annotated[
        str | None,
        typer.Option("--offset-json-file", metavar="FILE", help="Partitions and offsets as JSON."),
    ] = None,
    as_json: AsJson = False,
    bootstrap_server: BootstrapServer = None,
    timeout_ms: RequestTimeout = TIMEOUT_MS,
) -> None:
    from headwater.base.ids import TopicPartition

    name = any_topic(topic, topic_option)
    by_options = (name, partition, offset)
    if offset_json_file is not None:
        if any(value is not None for value in by_options):
            raise typer.BadParameter(
                "give a file or a partition, not both", param_hint="--offset-json-file"
            )
        offsets = _read_offsets(offset_json_file)
    elif name is None or partition is None or offset is None:
        raise typer.BadParameter(
            "name a topic, --partition and --offset, or --offset-json-file", param_hint="TOPIC"
        )
    else:
        offsets = {TopicPartition(name, partition): offset}
    failed = on_cluster(
        bootstrap_server,
        lambda connection: _delete(connection, offsets, as_json=as_json),
        timeout_ms=timeout_ms,
    )
    if failed:
        raise typer.Exit(EXIT_FAILURE)


async def _delete(
    connection: ClusterConnection, offsets: dict[TopicPartition, int], *, as_json: bool
) -> bool:
    """Delete and tell what remains of each partition; whether something went wrong."""
    from headwater.base.errors import KafkaError
    from headwater.cli.output.json_document import failure_fields, print_document
    from headwater.client.admin import OffsetOperations

    if not as_json:
        print("Executing records delete operation")
    before = await _deleted_waiting(connection, offsets)
    outcomes = await OffsetOperations(connection).delete_records(offsets, raise_errors=False)
    after = await _deleted_waiting(connection, offsets) if before else {}
    if not as_json:
        print("Records delete operation completed:")
    entries: list[dict[str, object]] = []
    has_failed = False
    for key, outcome in outcomes.items():
        place = {"topic": key.topic, "partition": key.partition}
        if isinstance(outcome, KafkaError):
            has_failed = True
            entries.append(place | failure_fields(outcome))
            print(f"headwater: {outcome}", file=sys.stderr)
        else:
            entry: dict[str, object] = place | {"low_watermark": outcome}
            if not as_json:
                print(f"partition: {key}\tlow_watermark: {outcome}")
            # A leader that has changed meanwhile has counted for itself.
            gone_count = after.get(key, 0) - before.get(key, 0)
            if gone_count > 0:
                entry["deleted_waiting"] = gone_count
                _tell_waiting(key, gone_count)
            entries.append(entry)
    if as_json:
        print_document({"partitions": entries})
    return has_failed


async def _deleted_waiting(
    connection: ClusterConnection, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, int]:
    """How many messages that waited for their time were deleted so far, where a broker tells."""
    from headwater.base.errors import KafkaError
    from headwater.client.admin import DelayedOperations

    try:
        topics = list(dict.fromkeys(partition.topic for partition in partitions))
        stats = await DelayedOperations(connection).delayed_stats(topics)
    except KafkaError:
        return {}  # Apache Kafka delays nothing; and deleting tells what else is wrong.
    return {key: each.deleted for key, each in stats.items() if not isinstance(each, KafkaError)}


def _tell_waiting(partition: TopicPartition, count: int) -> None:
    messages = "message that waited for its" if count == 1 else "messages that waited for their"
    went = "was" if count == 1 else "were"
    print(
        f"headwater: {count} {messages} time in {partition} {went} deleted with the records.",
        file=sys.stderr,
    )


def _read_offsets(path: str) -> dict[TopicPartition, int]:
    """The offsets in a file; anything odd about it is a mistake of the command line."""
    from headwater.base.ids import TopicPartition

    try:
        content: Any = json.loads(Path(path).read_text())
    except ValueError as error:
        raise _fault(path, f"is not JSON: {error}") from None
    if not isinstance(content, dict) or content.get("version", FILE_VERSION) != FILE_VERSION:
        raise _fault(path, f"should be an object with version {FILE_VERSION}")
    offsets: dict[TopicPartition, int] = {}
    for row in content.get("partitions") or []:
        match row:
            case {"topic": str(topic), "partition": int(partition), "offset": int(offset)}:
                key = TopicPartition(topic, partition)
            case _:
                raise _fault(path, f"has a partition without topic, partition and offset: {row}")
        if key in offsets:
            raise _fault(path, f"names {key} twice")
        offsets[key] = offset
    if not offsets:
        raise _fault(path, "names no partition")
    return offsets


def _fault(path: str, what: str) -> typer.BadParameter:
    return typer.BadParameter(f"{path} {what}", param_hint="--offset-json-file")
