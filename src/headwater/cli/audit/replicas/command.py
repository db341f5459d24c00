"""`headwater audit replicas`: its options, and what it prints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from headwater.cli.options.cluster import TIMEOUT_MS, BootstrapServer, RequestTimeout, on_cluster
from headwater.cli.options.cluster_names import complete_topics
from headwater.cli.options.json_option import AsJson

if TYPE_CHECKING:
    from headwater.cli.audit.replicas.actions import ComparedPartition

#: When replicas differ.
EXIT_DIFFERENT: Final = 3

HELP = """\
Compare the replicas of a topic below the high watermark, by the checksums of their batches.

    headwater audit replicas orders

    headwater audit replicas orders:3 --json

Names the first offsets at which replicas differ; then the exit code is 3. It is 1 if a broker \
could not be asked. Only headers are read: what turned on a disk is found by \
`headwater log verify`. Compacted topics are refused, since each broker compacts for itself.
"""


def replicas(
    topic: Annotated[
        str,
        typer.Argument(
            metavar="TOPIC[:PARTITION]",
            help="The topic, or one partition of it.",
            autocompletion=complete_topics,
        ),
    ],
    as_json: AsJson = False,
    bootstrap_server: BootstrapServer = None,
    timeout_ms: RequestTimeout = TIMEOUT_MS,
) -> None:
    from headwater.cli.audit.replicas.actions import compare_topic

    name, partition = _given(topic)
    compared = on_cluster(
        bootstrap_server,
        lambda connection: compare_topic(connection, name, partition),
        timeout_ms=timeout_ms,
    )
    if as_json:
        from headwater.cli.output.json_document import print_document

        print_document({"topic": name, "partitions": [_document(each) for each in compared]})
    else:
        _print(name, compared)
    if any(each.difference for each in compared):
        raise typer.Exit(EXIT_DIFFERENT)
    if any(each.unasked for each in compared):
        raise typer.Exit(1)


def _given(text: str) -> tuple[str, int | None]:
    """Names of topics have no colons."""
    name, colon, number = text.partition(":")
    if not colon:
        return name, None
    if not (number.isascii() and number.isdigit() and len(number) < 10):
        raise typer.BadParameter(f"{number!r} is no partition", param_hint="TOPIC[:PARTITION]")
    return name, int(number)


def _print(topic: str, compared: list[ComparedPartition]) -> None:
    from headwater.cli.output.plain_table import Column, print_table

    columns = (
        Column("PARTITION", "partition", is_number=True),
        Column("REPLICAS", "replicas"),
        Column("FROM", "from_offset", is_number=True),
        Column("TO", "to_offset", is_number=True),
        Column("BATCHES", "batch_count", is_number=True),
        Column("RESULT", "result"),
    )
    rows = [
        {**each._asdict(), "replicas": _names(each.replicas), "result": _result(each)}
        for each in compared
    ]
    print_table(f"Replicas of {topic}, below the high watermark", columns, rows)
    for each in compared:
        for broker_id, reason in sorted(each.unasked.items()):
            print(f"{topic}-{each.partition} on broker {broker_id} was not compared: {reason}")
        if each.difference is not None:
            difference = each.difference
            print(
                f"{topic}-{each.partition} differs from offset {difference.from_offset} to "
                f"{difference.to_offset - 1}: "
                + " unlike ".join(_brokers(party) for party in difference.parties)
                + "."
            )


def _result(each: ComparedPartition) -> str:
    if each.difference is not None:
        return "different"
    if len(each.replicas) < 2:
        return "nothing to compare with"
    return "equal"


def _brokers(ids: tuple[int, ...]) -> str:
    return f"broker{'' if len(ids) == 1 else 's'} {_names(ids)}"


def _names(ids: tuple[int, ...]) -> str:
    return ",".join(map(str, ids))


def _document(each: ComparedPartition) -> dict[str, Any]:
    difference = each.difference
    return {
        **each._asdict(),
        "result": _result(each),
        "difference": None
        if difference is None
        else {
            "from_offset": difference.from_offset,
            "to_offset": difference.to_offset,
            "parties": difference.parties,
        },
    }
