"""`headwater delay`: list messages that wait for their time, cancel and reschedule them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, TypeAlias

import typer

from headwater.cli.options.cluster import TIMEOUT_MS, BootstrapServer, RequestTimeout, on_cluster
from headwater.cli.options.cluster_names import complete_topics
from headwater.cli.options.delay_times import (
    DelayOption,
    DeliverAtOption,
    given_delay,
    given_moment,
)
from headwater.cli.options.json_option import RowsAsJson
from headwater.cli.options.topic_argument import TopicArgument, TopicOption, any_topic, one_topic

if TYPE_CHECKING:
    from headwater.base.message_id import MessageId
    from headwater.client.message_id import SenderId

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)

EXIT_FAILURE: Final = 1

HELP = """\
Look after messages that wait for their time: list and show, cancel, reschedule, deliver now.

A topic whose delay.mode is header delays what is sent with a delay:

    headwater topics create orders --config delay.mode=header

    echo hello | headwater produce orders --delay 10m --delay-id reminder-7

What waits there, and how much:

    headwater delay list orders --to 2026-11-20T10:00:00Z

    headwater delay stats

A message is named by its id, which its producer was told and the list shows, or by the id that \
its sender gave it, which may stand for several:

    headwater delay cancel orders-0@1234

    headwater delay reschedule --sender-id reminder-7 --topic orders --delay 1h

Only brokers of Headwater delay messages; for other clusters there is `headwater delay-service`, \
whose messages nobody can cancel.
"""

Ids: TypeAlias = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="ID...", show_default=False, help="Ids of messages, such as orders-0@1234."
    ),
]
SenderIdOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--sender-id",
        metavar="ID",
        help="All messages with this id of their sender's, instead of ID; needs --topic.",
    ),
]
OfTopic: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--topic",
        metavar="TOPIC",
        help="The topic of --sender-id.",
        autocompletion=complete_topics,
    ),
]
OfPartition: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--partition",
        min=0,
        help="The partition of --sender-id.",
        show_default="all of the topic",
    ),
]


@app.callback(help=HELP)
def _delay() -> None:
    pass


@app.command("list")
def list_messages(
    topic: TopicArgument = None,
    topic_option: TopicOption = None,
    due_from: Annotated[
        str | None,
        typer.Option(
            "--from", metavar="TIME", help="Only what is due then or later.", show_default="any"
        ),
    ] = None,
    due_to: Annotated[
        str | None,
        typer.Option(
            "--to", metavar="TIME", help="Only what is due then or sooner.", show_default="any"
        ),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, help="List so many at most.")] = 100,
    partition: Annotated[
        int | None,
        typer.Option("--partition", min=0, help="Only this partition.", show_default="all"),
    ] = None,
    as_json: RowsAsJson = False,
    bootstrap_server: BootstrapServer = None,
    timeout_ms: RequestTimeout = TIMEOUT_MS,
) -> None:
    """List the messages of a topic that are due first."""
    from headwater.cli.delay import actions

    name = one_topic(topic, topic_option)
    search = actions.Search(
        name,
        None if partition is None else [partition],
        given_moment(due_from, "--from"),
        given_moment(due_to, "--to"),
        limit,
    )
    on_cluster(
        bootstrap_server,
        lambda connection: actions.list_messages(connection, search, as_json=as_json),
        timeout_ms=timeout_ms,
    )


@app.command("show")
def show(
    ids: Ids = None,
    sender_id: SenderIdOption = None,
    topic: OfTopic = None,
    partition: OfPartition = None,
    as_json: RowsAsJson = False,
    bootstrap_server: BootstrapServer = None,
    timeout_ms: RequestTimeout = TIMEOUT_MS,
) -> None:
    """Show messages that wait, with all that is known of them."""
    from headwater.cli.delay import actions

    names = _names(ids, sender_id, topic, partition)
    failed = on_cluster(
        bootstrap_server,
        lambda connection: actions.show(connection, names, as_json=as_json),
        timeout_ms=timeout_ms,
    )
    if failed:
        raise typer.Exit(EXIT_FAILURE)


@app.command("cancel")
def cancel(
    ids: Ids = None,
    sender_id: SenderIdOption = None,
    topic: OfTopic = None,
    partition: OfPartition = None,
    as_json: RowsAsJson = False,
    bootstrap_server: BootstrapServer = None,
    timeout_ms: RequestTimeout = TIMEOUT_MS,
) -> None:
    """Cancel messages: they are never delivered."""
    from headwater.cli.delay import actions

    names = _names(ids, sender_id, topic, partition)
    failed = on_cluster(
        bootstrap_server,
        lambda connection: actions.cancel(connection, names, as_json=as_json),
        timeout_ms=timeout_ms,
    )
    if failed:
        raise typer.Exit(EXIT_FAILURE)


@app.command("reschedule")
def reschedule(
    ids: Ids = None,
    delay: DelayOption = None,
    deliver_at: DeliverAtOption = None,
    sender_id: SenderIdOption = None,
    topic: OfTopic = None,
    partition: OfPartition = None,
    as_json: RowsAsJson = False,
    bootstrap_server: BootstrapServer = None,
    timeout_ms: RequestTimeout = TIMEOUT_MS,
) -> None:
    """Have messages delivered so much from now, or at that time."""
    from headwater.cli.delay import actions

    names = _names(ids, sender_id, topic, partition)
    if (delay is None) == (deliver_at is None):
        raise typer.BadParameter("give one of the two", param_hint="--delay and --deliver-at")
    delay_ms = given_delay(delay, "--delay")
    deliver_at_ms = given_moment(deliver_at, "--deliver-at")
    failed = on_cluster(
        bootstrap_server,
        lambda connection: actions.reschedule(
            connection, names, delay_ms, deliver_at_ms, as_json=as_json
        ),
        timeout_ms=timeout_ms,
    )
    if failed:
        raise typer.Exit(EXIT_FAILURE)


@app.command("now")
def now(
    ids: Ids = None,
    sender_id: SenderIdOption = None,
    topic: OfTopic = None,
    partition: OfPartition = None,
    as_json: RowsAsJson = False,
    bootstrap_server: BootstrapServer = None,
    timeout_ms: RequestTimeout = TIMEOUT_MS,
) -> None:
    """Have messages delivered at once."""
    from headwater.cli.delay import actions

    names = _names(ids, sender_id, topic, partition)
    failed = on_cluster(
        bootstrap_server,
        lambda connection: actions.deliver_now(connection, names, as_json=as_json),
        timeout_ms=timeout_ms,
    )
    if failed:
        raise typer.Exit(EXIT_FAILURE)


@app.command("stats")
def stats(
    topic: TopicArgument = None,
    topic_option: TopicOption = None,
    as_json: RowsAsJson = False,
    bootstrap_server: BootstrapServer = None,
    timeout_ms: RequestTimeout = TIMEOUT_MS,
) -> None:
    """Count what waits, and what leaders have delivered since they started, by partition."""
    from headwater.cli.delay import actions

    name = any_topic(topic, topic_option)
    failed = on_cluster(
        bootstrap_server,
        lambda connection: actions.stats(connection, name, as_json=as_json),
        timeout_ms=timeout_ms,
    )
    if failed:
        raise typer.Exit(EXIT_FAILURE)


def _names(
    ids: list[str] | None, sender_id: str | None, topic: str | None, partition: int | None
) -> list[MessageId | SenderId]:
    """The messages that were named, in either way."""
    from headwater.base.message_id import MessageId
    from headwater.client.message_id import SenderId, sender_id_bytes

    if bool(ids) == (sender_id is not None):
        raise typer.BadParameter(
            "name messages in one of the two ways", param_hint="ID or --sender-id"
        )
    if sender_id is None:
        if topic is not None or partition is not None:
            raise typer.BadParameter(
                "an id says it already", param_hint="--topic" if topic else "--partition"
            )
        try:
            return [MessageId.parse(text) for text in ids or ()]
        except ValueError as error:
            raise typer.BadParameter(str(error).removesuffix("."), param_hint="ID") from None
    if topic is None:
        raise typer.BadParameter("name the topic too", param_hint="--sender-id")
    try:
        return [SenderId(topic, sender_id_bytes(sender_id), partition)]
    except ValueError as error:
        raise typer.BadParameter(str(error).removesuffix("."), param_hint="--sender-id") from None
