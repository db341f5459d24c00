"""The options that say which cluster a command talks to, and the way to run something on it.

The client and asyncio are imported when a command runs, so that `--help` and a wrong option answer
at once.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, TypeAlias, TypeVar

import typer

from headwater.cli.output.standard_output import standard_output

if TYPE_CHECKING:
    from headwater.client.connection.cluster_connection import ClusterConnection

Result = TypeVar("Result")

BOOTSTRAP_DEFAULT = "127.0.0.1:9092"
BOOTSTRAP_VARIABLE = "HEADWATER_BOOTSTRAP_SERVER"
TIMEOUT_MS = 30_000

BootstrapServer: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--bootstrap-server",
        "-b",
        metavar="HOST:PORT,...",
        help="Any brokers of the cluster; the environment variable "
        f"{BOOTSTRAP_VARIABLE} changes the default.",
        show_default=BOOTSTRAP_DEFAULT,
    ),
]

RequestTimeout: TypeAlias = Annotated[
    int,
    typer.Option(
        "--request-timeout-ms",
        metavar="MS",
        min=1,
        help="How long to try before giving up.",
    ),
]


def bootstrap_servers(*given: str | None) -> str:
    """The first that was given, or what the environment says, or the default."""
    for servers in (*given, os.environ.get(BOOTSTRAP_VARIABLE)):
        if servers:
            return servers
    return BOOTSTRAP_DEFAULT


def on_cluster(
    bootstrap_server: str | None,
    action: Callable[[ClusterConnection], Awaitable[Result]],
    *,
    timeout_ms: int = TIMEOUT_MS,
) -> Result:
    """Connect, do something, and close; standard output may be a pipe that ends early."""
    import asyncio

    from headwater.client.connection.cluster_connection import ClusterConnection

    async def connected() -> Result:
        async with ClusterConnection(
            bootstrap_servers(bootstrap_server), timeout_s=timeout_ms / 1000
        ) as connection:
            return await action(connection)

    with standard_output():
        return asyncio.run(connected())
