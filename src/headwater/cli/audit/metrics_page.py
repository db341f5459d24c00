"""What a command that runs for long shows to Prometheus, where `--metrics-listen` says."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Annotated, Final, TypeAlias

import typer

MetricsListen: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--metrics-listen",
        metavar="HOST:PORT",
        help="Where to show figures at /metrics, in Prometheus' text format.",
    ),
]

_PATH: Final = "/metrics"


def given_address(text: str | None) -> tuple[str, int] | None:
    """Where to listen, if that was said."""
    from headwater.net.endpoint import split_address

    if text is None:
        return None
    try:
        return split_address(text)
    except ValueError as error:
        sentence = str(error).removesuffix(".")
        raise typer.BadParameter(sentence, param_hint="--metrics-listen") from None


@contextlib.asynccontextmanager
async def metrics_page(
    address: tuple[str, int] | None, make_pieces: Callable[[], Iterable[str]]
) -> AsyncIterator[int]:
    """Show what `make_pieces` makes whenever somebody asks; yields the port, 0 if there is none."""
    from headwater.broker.metrics.exposition import CONTENT_TYPE
    from headwater.net.http_endpoint import HttpAnswer, HttpEndpoint

    if address is None:
        yield 0
        return

    async def answer(path: str) -> HttpAnswer | None:
        if path != _PATH:
            return None
        return HttpAnswer("".join(make_pieces()).encode(), content_type=CONTENT_TYPE)

    endpoint = await HttpEndpoint.start(*address, answer)
    try:
        yield endpoint.port
    finally:
        endpoint.close()
