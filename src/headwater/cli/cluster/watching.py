"""A status that is looked at again and again: redrawn on a terminal, printed anew elsewhere."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from headwater.base.errors import KafkaError
from headwater.cli.cluster.document import status_document
from headwater.cli.cluster.report import status_lines
from headwater.cli.cluster.survey import ClusterStatus, Surveyor
from headwater.cli.interruption import cancelled_by_signals

if TYPE_CHECKING:
    from rich.live import Live


async def watch(
    surveyor: Surveyor, interval_s: float, look_count: int | None, *, as_json: bool
) -> bool:
    """Look until it is interrupted, or so often; whether all was well in the end."""
    is_healthy = False
    live = None if as_json or not sys.stdout.isatty() else _live()
    show = _shower(live, as_json)
    try:
        with cancelled_by_signals():
            looks = 0
            while True:
                try:
                    status = await surveyor.look()
                except KafkaError as error:
                    # While a cluster is in trouble is when somebody watches it.
                    is_healthy = False
                    print(f"headwater: The cluster does not answer: {error}", file=sys.stderr)
                else:
                    is_healthy = status.is_healthy
                    show(status)
                looks += 1
                if looks == look_count:
                    break
                await asyncio.sleep(interval_s)
    except asyncio.CancelledError:
        pass  # Whoever watches has seen enough.
    finally:
        if live is not None:
            live.stop()
    return is_healthy


def _live() -> Live:
    from rich.console import Console
    from rich.live import Live

    live = Live(console=Console(), auto_refresh=False, vertical_overflow="crop")
    live.start()
    return live


def _shower(live: Live | None, as_json: bool) -> Callable[[ClusterStatus], None]:
    def redraw(status: ClusterStatus) -> None:
        from rich.text import Text

        text = Text.from_ansi("\n".join(status_lines(status)), no_wrap=True, overflow="ellipsis")
        if live is not None:
            live.update(text, refresh=True)

    def print_document(status: ClusterStatus) -> None:
        print(json.dumps(status_document(status), ensure_ascii=False), flush=True)

    def print_tables(status: ClusterStatus) -> None:
        print("\n".join(status_lines(status)), end="\n\n", flush=True)

    if as_json:
        return print_document
    return print_tables if live is None else redraw
