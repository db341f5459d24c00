"""Names that only a cluster knows, for a shell to offer: topics and groups.

A cluster that does not answer at once, or at all, offers nothing, and without a word: a Tab must
neither wait nor print.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

import typer

from headwater.cli.options.cluster import on_cluster

if TYPE_CHECKING:
    from headwater.client.connection.cluster_connection import ClusterConnection

_TIMEOUT_MS: Final = 2_000


def complete_topics(ctx: typer.Context) -> list[str]:
    """The topics of the cluster that the command line names."""
    return _ask(ctx, _topic_names)


def complete_groups(ctx: typer.Context) -> list[str]:
    """The groups of the cluster that the command line names."""
    return _ask(ctx, _group_names)


def _ask(
    ctx: typer.Context, names: Callable[[ClusterConnection], Awaitable[list[str]]]
) -> list[str]:
    try:
        return on_cluster(ctx.params.get("bootstrap_server"), names, timeout_ms=_TIMEOUT_MS)
    except Exception:
        return []


async def _topic_names(connection: ClusterConnection) -> list[str]:
    from headwater.client.admin import TopicOperations

    return [topic.name for topic in await TopicOperations(connection).list_topics()]


async def _group_names(connection: ClusterConnection) -> list[str]:
    from headwater.client.admin import GroupOperations

    return [group.group_id for group in await GroupOperations(connection).list_groups()]
