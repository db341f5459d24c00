"""`headwater transactions`: list and describe transactions, and end those that hang.

Commands and options are those of Kafka's kafka-transactions.sh, which names the action by a word.
"""

from __future__ import annotations

from typing import Annotated, Final, TypeAlias

import typer

from headwater.cli.options.cluster import TIMEOUT_MS, BootstrapServer, RequestTimeout, on_cluster
from headwater.cli.options.json_option import RowsAsJson
from headwater.cli.options.topic_argument import TopicArgument, TopicOption, any_topic, one_topic

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)

TRANSACTION_TIMEOUT_MINUTES_MAX: Final = 15

HELP = """\
List and describe transactions, and end those that hang.

To see which there are, and what one of them is about:

    headwater transactions list --state Ongoing

    headwater transactions describe --transactional-id payments-1

A transaction that hangs keeps readers of committed records from going on: a partition holds it \
open, and its coordinator no longer knows of it. To find such transactions, and end one:

    headwater transactions find-hanging --topic orders

    headwater transactions abort --topic orders --partition 0 --start-offset 4711
"""

Partition: TypeAlias = Annotated[int, typer.Option("--partition", min=0, help="The partition.")]
BrokerId: TypeAlias = Annotated[
    int | None,
    typer.Option("--broker-id", metavar="ID", help="Ask this broker instead of the leader."),
]


@app.callback(help=HELP)
def _transactions() -> None:
    pass


@app.command("list")
def list_transactions(
    state: Annotated[
        str | None,
        typer.Option(
            "--state",
            metavar="STATE,...",
            help="Only in these states: Empty, Ongoing, PrepareCommit, PrepareAbort, "
            "CompleteCommit, CompleteAbort.",
        ),
    ] = None,
    duration_filter: Annotated[
        int | None,
        typer.Option(
            "--duration-filter",
            metavar="MS",
            min=0,
            help="Only transactions that have been open for longer than this.",
        ),
    ] = None,
    transactional_id_pattern: Annotated[
        str | None,
        typer.Option(
            "--transactional-id-pattern",
            metavar="REGEX",
            help="Only ids that match this regular expression as a whole.",
        ),
    ] = None,
    as_json: RowsAsJson = False,
    bootstrap_server: BootstrapServer = None,
    timeout_ms: RequestTimeout = TIMEOUT_MS,
) -> None:
    """List the transactional ids of all coordinators."""
    from headwater.cli.transactions import actions as transaction_actions

    states = [name.strip() for name in (state or "").split(",") if name.strip()]
    on_cluster(
        bootstrap_server,
        lambda connection: transaction_actions.list_transactions(
            connection, states, duration_filter, transactional_id_pattern, as_json=as_json
        ),
        timeout_ms=timeout_ms,
    )


@app.command("describe")
def describe(
    transactional_id: Annotated[
        str | None,
        typer.Argument(metavar="TRANSACTIONAL_ID", show_default=False, help="The id."),
    ] = None,
    transactional_id_option: Annotated[
        str | None,
        typer.Option("--transactional-id", metavar="ID", help="The same as the argument."),
    ] = None,
    as_json: RowsAsJson = False,
    bootstrap_server: BootstrapServer = None,
    timeout_ms: RequestTimeout = TIMEOUT_MS,
) -> None:
    """Show the state of a transactional id, and the partitions of its transaction."""
    from headwater.cli.transactions.actions import describe_transaction

    if (transactional_id is None) == (transactional_id_option is None):
        raise typer.BadParameter("name one", param_hint="TRANSACTIONAL_ID or --transactional-id")
    name = transactional_id or transactional_id_option or ""
    on_cluster(
        bootstrap_server,
        lambda connection: describe_transaction(connection, name, as_json=as_json),
        timeout_ms=timeout_ms,
    )


@app.command("describe-producers")
def describe_producers(
    partition: Partition,
    topic: TopicArgument = None,
    topic_option: TopicOption = None,
    broker_id: BrokerId = None,
    as_json: RowsAsJson = False,
    bootstrap_server: BootstrapServer = None,
    timeout_ms: RequestTimeout = TIMEOUT_MS,
) -> None:
    """Show the producers that a partition knows, and where their open transactions begin."""
    from headwater.base.ids import TopicPartition
    from headwater.cli.transactions import actions as transaction_actions

    key = TopicPartition(one_topic(topic, topic_option), partition)
    on_cluster(
        bootstrap_server,
        lambda connection: transaction_actions.describe_producers(
            connection, key, broker_id, as_json=as_json
        ),
        timeout_ms=timeout_ms,
    )


@app.command("abort")
def abort(
    partition: Partition,
    topic: TopicArgument = None,
    topic_option: TopicOption = None,
    start_offset: Annotated[
        int | None,
        typer.Option(
            "--start-offset", metavar="N", min=0, help="The offset at which the transaction begins."
        ),
    ] = None,
    producer_id: Annotated[
        int | None,
        typer.Option(
            "--producer-id",
            metavar="ID",
            help="Or the producer of the transaction, with its epoch and the coordinator's.",
        ),
    ] = None,
    producer_epoch: Annotated[
        int | None, typer.Option("--producer-epoch", metavar="N", help="The producer's epoch.")
    ] = None,
    coordinator_epoch: Annotated[
        int | None,
        typer.Option(
            "--coordinator-epoch",
            metavar="N",
            help="The epoch of the coordinator that last ended a transaction of that producer.",
        ),
    ] = None,
    bootstrap_server: BootstrapServer = None,
    timeout_ms: RequestTimeout = TIMEOUT_MS,
) -> None:
    """End a transaction that hangs in a partition. Never do it to one whose producer is at work."""
    from headwater.base.ids import TopicPartition
    from headwater.cli.transactions.actions import ProducerEpochs, abort_transaction

    key = TopicPartition(one_topic(topic, topic_option), partition)
    epochs = None
    if producer_id is not None and producer_epoch is not None and coordinator_epoch is not None:
        epochs = ProducerEpochs(producer_id, producer_epoch, coordinator_epoch)
    if (start_offset is None) == (epochs is None):
        raise typer.BadParameter(
            "say which transaction, in one of the two ways",
            param_hint="--start-offset, or --producer-id with --producer-epoch and "
            "--coordinator-epoch",
        )
    on_cluster(
        bootstrap_server,
        lambda connection: abort_transaction(connection, key, start_offset, epochs),
        timeout_ms=timeout_ms,
    )


@app.command("find-hanging")
def find_hanging(
    topic: TopicArgument = None,
    topic_option: TopicOption = None,
    partition: Annotated[
        int | None, typer.Option("--partition", min=0, help="Only this partition of the topic.")
    ] = None,
    broker_id: Annotated[
        int | None,
        typer.Option(
            "--broker-id", metavar="ID", help="Only partitions with a replica on this broker."
        ),
    ] = None,
    max_transaction_timeout: Annotated[
        int,
        typer.Option(
            "--max-transaction-timeout",
            metavar="MINUTES",
            min=0,
            help="How long a transaction may take; one that is younger does not hang.",
        ),
    ] = TRANSACTION_TIMEOUT_MINUTES_MAX,
    as_json: RowsAsJson = False,
    bootstrap_server: BootstrapServer = None,
    timeout_ms: RequestTimeout = TIMEOUT_MS,
) -> None:
    """Find transactions that partitions hold open and their coordinators do not know of."""
    from headwater.cli.transactions import actions as transaction_actions

    name = any_topic(topic, topic_option)
    if partition is not None and name is None:
        raise typer.BadParameter("name its topic as well", param_hint="--partition")
    on_cluster(
        bootstrap_server,
        lambda connection: transaction_actions.find_hanging(
            connection, name, partition, broker_id, max_transaction_timeout, as_json=as_json
        ),
        timeout_ms=timeout_ms,
    )
