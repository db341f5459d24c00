"""`headwater trace`: the whole way of one message, and the slowest messages of a topic."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Final

import typer
from typer.core import TyperGroup

from headwater.cli.options.cluster import (
    TIMEOUT_MS,
    BootstrapServer,
    RequestTimeout,
    on_cluster,
)
from headwater.cli.options.cluster_names import complete_topics
from headwater.cli.options.json_option import AsJson

if TYPE_CHECKING:
    from headwater.cli.trace.actions import Asked

SHOW: Final = "show"
_HELP_OPTIONS: Final = ("--help", "-h")

HELP = """\
Tell the whole way of one message: each step with its time, its place and what it waited for.

    headwater trace orders-0@1234

    headwater trace --key customer-7 --topic orders

    headwater trace slow orders --last 1h --step lag

No client has to help: most is told by the record, by what brokers publish once a minute, and by \
the headers of delays, retries and dead letters. What is good to a second only says so.
"""


class ShowByDefault(TyperGroup):
    """What names no command is a message to show."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        if args and args[0] not in self.commands and args[0] not in _HELP_OPTIONS:
            args = [SHOW, *args]
        return super().parse_args(ctx, args)


app = typer.Typer(cls=ShowByDefault, no_args_is_help=True, pretty_exceptions_enable=False)


class Step(StrEnum):
    """By which wait messages are compared."""

    REPLICATION = "replication"
    LAG = "lag"
    HANDLING = "handling"
    TOTAL = "total"


@app.callback(help=HELP)
def _trace() -> None:
    pass


@app.command(SHOW)
def show(
    message: Annotated[
        str | None,
        typer.Argument(
            metavar="ID", show_default=False, help="The id of a message, such as orders-0@1234."
        ),
    ] = None,
    key: Annotated[
        str | None,
        typer.Option("--key", help="The last messages with this key; needs --topic."),
    ] = None,
    topic: Annotated[
        str | None,
        typer.Option(
            "--topic", metavar="TOPIC", help="The topic of --key.", autocompletion=complete_topics
        ),
    ] = None,
    trace_id: Annotated[
        str | None,
        typer.Option("--trace-id", metavar="HEX", help="All messages of a trace."),
    ] = None,
    last: Annotated[
        str,
        typer.Option("--last", metavar="TIME", help="How far back --key and --trace-id look."),
    ] = "1h",
    limit: Annotated[
        int, typer.Option("--limit", min=1, help="So many messages at most, the newest ones.")
    ] = 5,
    as_json: AsJson = False,
    bootstrap_server: BootstrapServer = None,
    timeout_ms: RequestTimeout = TIMEOUT_MS,
) -> None:
    """Tell the way of a message, by its id, by its key or by the id of its trace."""
    from headwater.cli.trace import actions

    asked = _asked(message, key, topic, trace_id, last, limit)
    on_cluster(
        bootstrap_server,
        lambda connection: actions.show(connection, asked, as_json=as_json),
        timeout_ms=timeout_ms,
    )


@app.command("slow")
def slow(
    topic: Annotated[
        str, typer.Argument(metavar="TOPIC", help="The topic.", autocompletion=complete_topics)
    ],
    last: Annotated[
        str, typer.Option("--last", metavar="TIME", help="Messages of how long ago count.")
    ] = "1h",
    step: Annotated[Step, typer.Option("--step", help="What they were slow in.")] = Step.TOTAL,
    limit: Annotated[int, typer.Option("--limit", min=1, help="List so many.")] = 10,
    as_json: AsJson = False,
    bootstrap_server: BootstrapServer = None,
    timeout_ms: RequestTimeout = TIMEOUT_MS,
) -> None:
    """List the slowest messages, by what they waited for."""
    from headwater.cli.options.delay_times import given_delay
    from headwater.cli.trace import slow as action

    last_ms = given_delay(last, "--last") or 0
    on_cluster(
        bootstrap_server,
        lambda connection: action.print_slowest(
            connection, topic, step.value, last_ms, limit, as_json=as_json
        ),
        timeout_ms=timeout_ms,
    )


def _asked(
    message: str | None,
    key: str | None,
    topic: str | None,
    trace_id: str | None,
    last: str,
    limit: int,
) -> Asked:
    """What is to be shown, named in one of the three ways."""
    from headwater.base.message_id import MessageId
    from headwater.cli.options.delay_times import given_delay
    from headwater.cli.trace.actions import Asked
    from headwater.client.tracing.trace_step import is_trace_id

    if sum(each is not None for each in (message, key, trace_id)) != 1:
        raise typer.BadParameter(
            "name a message in one of the three ways", param_hint="ID, --key or --trace-id"
        )
    if (key is None) != (topic is None):
        raise typer.BadParameter("they go together", param_hint="--key and --topic")
    if trace_id is not None and not is_trace_id(trace_id.lower()):
        raise typer.BadParameter(
            f"{trace_id!r} is no id of a trace: it has 32 hexadecimal digits",
            param_hint="--trace-id",
        )
    place = None
    if message is not None:
        try:
            place = MessageId.parse(message)
        except ValueError as error:
            raise typer.BadParameter(str(error).removesuffix("."), param_hint="ID") from None
    last_ms = given_delay(last, "--last") or 0
    return Asked(
        place,
        None if key is None else key.encode("utf-8", "surrogateescape"),
        topic,
        None if trace_id is None else trace_id.lower(),
        last_ms,
        limit,
    )
