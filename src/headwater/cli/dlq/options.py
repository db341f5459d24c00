"""What the commands about dead letters share: which letters are meant, and on which cluster."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, TypeAlias, TypeVar

import typer

from headwater.cli.options.cluster import bootstrap_servers
from headwater.cli.options.cluster_names import complete_groups, complete_topics
from headwater.cli.options.delay_times import given_moment
from headwater.cli.output.standard_output import standard_output

if TYPE_CHECKING:
    from headwater.delivery.redrive.async_redrives import AsyncRedrives
    from headwater.delivery.redrive.letters.letter_filter import LetterFilter

Result = TypeVar("Result")

DeadLetterTopic: TypeAlias = Annotated[
    str,
    typer.Argument(metavar="TOPIC", help="The dead-letter topic.", autocompletion=complete_topics),
]
OfGroup: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--group",
        metavar="GROUP",
        help="Only letters that this group could not handle.",
        autocompletion=complete_groups,
    ),
]
FromTopic: TypeAlias = Annotated[
    str | None,
    typer.Option("--origin-topic", metavar="TOPIC", help="Only letters that were in this topic."),
]
OfOrigin: TypeAlias = Annotated[
    str | None,
    typer.Option("--origin", metavar="ID", help="Only the message of this name: orders-0@1234."),
]
WithError: TypeAlias = Annotated[
    str | None,
    typer.Option("--error", metavar="TEXT", help="Only with this in the error's class or message."),
]
WithKey: TypeAlias = Annotated[
    str | None, typer.Option("--key", metavar="KEY", help="Only letters with this key.")
]
WithHeaders: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--header", metavar="NAME=VALUE", help="Only with this header; may be repeated."),
]
FromTime: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--from", metavar="TIME", help="Only what failed last then or later.", show_default="any"
    ),
]
ToTime: TypeAlias = Annotated[
    str | None,
    typer.Option("--to-time", metavar="TIME", help="Only what failed last before."),
]


def given_filter(
    group: str | None,
    topic: str | None,
    origin: str | None,
    error: str | None,
    key: str | None,
    headers: list[str] | None,
    times: tuple[str | None, str | None],
) -> LetterFilter:
    """The letters that the options mean."""
    from headwater.delivery.redrive.letters.letter_filter import LetterFilter

    return LetterFilter(
        group=group,
        topic=topic,
        origin=origin,
        error=error,
        key=None if key is None else key.encode(),
        headers=given_headers(headers, "--header"),
        from_ms=given_moment(times[0], "--from"),
        to_ms=given_moment(times[1], "--to-time"),
    )


def given_headers(texts: list[str] | None, option: str) -> tuple[tuple[str, bytes], ...]:
    headers = []
    for text in texts or ():
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise typer.BadParameter(f"{text!r} is not NAME=VALUE", param_hint=option)
        headers.append((name, value.encode()))
    return tuple(headers)


def on_redrives(
    bootstrap_server: str | None, action: Callable[[AsyncRedrives], Awaitable[Result]]
) -> Result:
    """Do something with the letters of a cluster; Ctrl-C ends it in an orderly way."""
    import asyncio

    from headwater.cli.interruption import cancelled_by_signals
    from headwater.delivery.redrive.async_redrives import AsyncRedrives

    async def run() -> Result:
        with cancelled_by_signals():
            return await action(AsyncRedrives(config_of(bootstrap_server)))

    with standard_output():
        try:
            return asyncio.run(run())
        except asyncio.CancelledError:
            raise typer.Exit(1) from None


def config_of(bootstrap_server: str | None) -> dict[str, object]:
    return {"bootstrap.servers": bootstrap_servers(bootstrap_server)}
