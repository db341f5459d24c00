"""`headwater elect-leaders`: have partitions elect their leaders.

With the options of Kafka's kafka-leader-election.sh, or in fewer words.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Final

import typer

from headwater.cli.elections.partitions_file import read_partitions
from headwater.cli.options.cluster import TIMEOUT_MS, BootstrapServer, RequestTimeout, on_cluster
from headwater.cli.options.topic_argument import TopicArgument, TopicOption, any_topic

if TYPE_CHECKING:
    from headwater.cli.options.topic_partitions import TopicScope

app = typer.Typer(pretty_exceptions_enable=False)

EXIT_FAILURE: Final = 1

HELP = """\
Have partitions elect their leaders.

After a broker was away, others lead its partitions. The preferred leader, the first of a
partition's replicas, leads again after:

    headwater elect-leaders --all-topic-partitions

    headwater elect-leaders orders --partition 0

A partition of which no replica in sync is alive has no leader. An unclean election makes one that
is alive its leader. The records that only the others have are lost:

    headwater elect-leaders orders --partition 0 --election-type unclean

Several partitions, by a file as Kafka's kafka-leader-election.sh takes it:

    headwater elect-leaders --path-to-json-file partitions.json

    {"partitions": [{"topic": "orders", "partition": 0}]}
"""


class Election(StrEnum):
    """As Kafka's tool calls them."""

    PREFERRED = "preferred"
    UNCLEAN = "unclean"


@app.command(help=HELP)
def elect_leaders(
    topic: TopicArgument = None,
    topic_option: TopicOption = None,
    partition: Annotated[
        int | None, typer.Option("--partition", min=0, help="One partition of the topic.")
    ] = None,
    all_partitions: Annotated[
        bool, typer.Option("--all-topic-partitions", help="All partitions that need an election.")
    ] = False,
    path_to_json_file: Annotated[
        str | None,
        typer.Option("--path-to-json-file", metavar="FILE", help="Partitions as JSON."),
    ] = None,
    election_type: Annotated[
        Election,
        typer.Option("--election-type", case_sensitive=False, help="Who is to lead."),
    ] = Election.PREFERRED,
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON object for each partition.")
    ] = False,
    bootstrap_server: BootstrapServer = None,
    timeout_ms: RequestTimeout = TIMEOUT_MS,
) -> None:
    scopes = _scopes(any_topic(topic, topic_option), partition, all_partitions, path_to_json_file)
    from headwater.cli.elections.actions import elect

    failed = on_cluster(
        bootstrap_server,
        lambda connection: elect(connection, scopes, election_type.name, as_json=as_json),
        timeout_ms=timeout_ms,
    )
    if failed:
        raise typer.Exit(EXIT_FAILURE)


def _scopes(
    topic: str | None, partition: int | None, all_partitions: bool, path: str | None
) -> list[TopicScope] | None:
    """Which partitions are meant; None for all."""
    if (topic is not None) + all_partitions + (path is not None) != 1:
        raise typer.BadParameter(
            "name a topic, a file or all partitions, and one of these only",
            param_hint="TOPIC, --path-to-json-file or --all-topic-partitions",
        )
    if partition is not None and topic is None:
        raise typer.BadParameter("name its topic", param_hint="--partition")
    if all_partitions:
        return None
    from headwater.cli.options.topic_partitions import TopicScope

    if path is not None:
        return [TopicScope(name, numbers) for name, numbers in read_partitions(path).items()]
    return [TopicScope(topic or "", None if partition is None else (partition,))]
