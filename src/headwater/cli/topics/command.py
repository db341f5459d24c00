"""`headwater topics`: create, list, describe, alter and delete topics.

Each command takes its topic as an argument or, as Kafka's own tool does, by `--topic`. That tool's
form with a flag for the action is turned into words by `flag_form`.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

import typer

from headwater.cli.options.cluster import TIMEOUT_MS, BootstrapServer, RequestTimeout, on_cluster
from headwater.cli.options.json_option import AsJson
from headwater.cli.options.topic_argument import TopicArgument, TopicOption, any_topic, one_topic

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)

HELP = """\
Create, list, describe, alter and delete topics.

In words, as the commands below:

    headwater topics create orders -p 3 --config retention.ms=86400000

    headwater topics describe orders

Or with the flags of Kafka's kafka-topics.sh:

    headwater topics --create --topic orders --partitions 3

    headwater topics --describe --topic 'ord.*' --bootstrap-server b1:9092

Where topics are chosen, a regular expression that matches the whole name will do. With --json each
command prints one document, for programs.
"""

Partitions: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--partitions", "-p", min=1, help="How many partitions.", show_default="num.partitions"
    ),
]
ReplicaAssignment: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--replica-assignment",
        metavar="B:B,B:B,...",
        help="The brokers of each partition, the preferred leader first: 0:1,1:0 is two "
        "partitions on brokers 0 and 1.",
    ),
]
IfExists: TypeAlias = Annotated[
    bool, typer.Option("--if-exists", help="No error if there is no such topic.")
]
ExcludeInternal: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--exclude-internal", help="Leave out internal topics such as __consumer_offsets."
    ),
]


@app.callback(help=HELP)
def _topics() -> None:
    pass


@app.command("create")
def create(
    topic: TopicArgument = None,
    topic_option: TopicOption = None,
    partitions: Partitions = None,
    replication_factor: Annotated[
        int | None,
        typer.Option(
            "--replication-factor",
            "-r",
            min=1,
            help="How many copies of each partition.",
            show_default="default.replication.factor",
        ),
    ] = None,
    replica_assignment: ReplicaAssignment = None,
    config: Annotated[
        list[str] | None,
        typer.Option(
            "--config", "-c", metavar="NAME=VALUE", help="A setting of the topic; may be repeated."
        ),
    ] = None,
    if_not_exists: Annotated[
        bool, typer.Option("--if-not-exists", help="No error if the topic is there already.")
    ] = False,
    as_json: AsJson = False,
    bootstrap_server: BootstrapServer = None,
    timeout_ms: RequestTimeout = TIMEOUT_MS,
) -> None:
    """Create a topic."""
    from headwater.cli.topics.actions import create_topic, parse_assignment, parse_configs
    from headwater.client.admin import NewTopic

    name = one_topic(topic, topic_option)
    if replica_assignment is not None and (partitions or replication_factor):
        raise typer.BadParameter(
            "it says how many partitions and replicas there are, so do not give those too",
            param_hint="--replica-assignment",
        )
    assignment = parse_assignment(replica_assignment)
    new_topic = NewTopic(
        name,
        -1 if partitions is None else partitions,
        -1 if replication_factor is None else replication_factor,
        dict(enumerate(assignment or [])),
        parse_configs(config or []),
    )
    on_cluster(
        bootstrap_server,
        lambda connection: create_topic(
            connection, new_topic, if_not_exists=if_not_exists, as_json=as_json
        ),
        timeout_ms=timeout_ms,
    )


@app.command("list")
def list_names(
    topic: TopicArgument = None,
    topic_option: TopicOption = None,
    exclude_internal: ExcludeInternal = False,
    as_json: AsJson = False,
    bootstrap_server: BootstrapServer = None,
    timeout_ms: RequestTimeout = TIMEOUT_MS,
) -> None:
    """List the names of topics, all or those that match."""
    from headwater.cli.topics.actions import TopicChoice, list_topics

    choice = TopicChoice(any_topic(topic, topic_option), exclude_internal=exclude_internal)
    on_cluster(
        bootstrap_server,
        lambda connection: list_topics(connection, choice, as_json=as_json),
        timeout_ms=timeout_ms,
    )


@app.command("describe")
def describe(
    topic: TopicArgument = None,
    topic_option: TopicOption = None,
    topic_id: Annotated[
        str | None, typer.Option("--topic-id", metavar="ID", help="The topic with this id.")
    ] = None,
    under_replicated_partitions: Annotated[
        bool,
        typer.Option(
            "--under-replicated-partitions", help="Only partitions with replicas out of sync."
        ),
    ] = False,
    unavailable_partitions: Annotated[
        bool, typer.Option("--unavailable-partitions", help="Only partitions without a leader.")
    ] = False,
    under_min_isr_partitions: Annotated[
        bool,
        typer.Option(
            "--under-min-isr-partitions",
            help="Only partitions with fewer in-sync replicas than min.insync.replicas.",
        ),
    ] = False,
    at_min_isr_partitions: Annotated[
        bool,
        typer.Option(
            "--at-min-isr-partitions",
            help="Only partitions with just as many in-sync replicas as min.insync.replicas.",
        ),
    ] = False,
    topics_with_overrides: Annotated[
        bool,
        typer.Option("--topics-with-overrides", help="Only topics with settings of their own."),
    ] = False,
    exclude_internal: ExcludeInternal = False,
    if_exists: IfExists = False,
    as_json: AsJson = False,
    bootstrap_server: BootstrapServer = None,
    timeout_ms: RequestTimeout = TIMEOUT_MS,
) -> None:
    """Show settings, leaders, replicas and in-sync replicas of topics, all or those that match."""
    from headwater.cli.topics.actions import TopicChoice, describe_topics
    from headwater.cli.topics.partition_filter import PartitionFilter

    wanted = {
        PartitionFilter.UNDER_REPLICATED: under_replicated_partitions,
        PartitionFilter.UNAVAILABLE: unavailable_partitions,
        PartitionFilter.UNDER_MIN_ISR: under_min_isr_partitions,
        PartitionFilter.AT_MIN_ISR: at_min_isr_partitions,
        PartitionFilter.WITH_OVERRIDES: topics_with_overrides,
    }
    filters = [partition_filter for partition_filter, is_wanted in wanted.items() if is_wanted]
    if len(filters) > 1:
        raise typer.BadParameter(
            "only one of these at a time", param_hint=" and ".join(f.value for f in filters)
        )
    choice = TopicChoice(any_topic(topic, topic_option), topic_id, exclude_internal, if_exists)
    partition_filter = filters[0] if filters else PartitionFilter.ALL
    on_cluster(
        bootstrap_server,
        lambda connection: describe_topics(connection, choice, partition_filter, as_json=as_json),
        timeout_ms=timeout_ms,
    )


@app.command("alter")
def alter(
    topic: TopicArgument = None,
    topic_option: TopicOption = None,
    partitions: Annotated[
        int | None,
        typer.Option("--partitions", "-p", min=1, help="How many there should be."),
    ] = None,
    replica_assignment: ReplicaAssignment = None,
    if_exists: IfExists = False,
    as_json: AsJson = False,
    bootstrap_server: BootstrapServer = None,
    timeout_ms: RequestTimeout = TIMEOUT_MS,
) -> None:
    """Add partitions to a topic. Keys then belong to other partitions than before."""
    from headwater.cli.topics.actions import TopicChoice, grow_topics, parse_assignment

    choice = TopicChoice(one_topic(topic, topic_option), if_exists=if_exists)
    if partitions is None:
        raise typer.BadParameter("say how many there should be", param_hint="--partitions")
    assignment = parse_assignment(replica_assignment)
    on_cluster(
        bootstrap_server,
        lambda connection: grow_topics(connection, choice, partitions, assignment, as_json=as_json),
        timeout_ms=timeout_ms,
    )


@app.command("delete")
def delete(
    topic: TopicArgument = None,
    topic_option: TopicOption = None,
    if_exists: IfExists = False,
    as_json: AsJson = False,
    bootstrap_server: BootstrapServer = None,
    timeout_ms: RequestTimeout = TIMEOUT_MS,
) -> None:
    """Delete a topic, or all that match, with their records."""
    from headwater.cli.topics.actions import TopicChoice, delete_topics

    choice = TopicChoice(one_topic(topic, topic_option), if_exists=if_exists)
    on_cluster(
        bootstrap_server,
        lambda connection: delete_topics(connection, choice, as_json=as_json),
        timeout_ms=timeout_ms,
    )
