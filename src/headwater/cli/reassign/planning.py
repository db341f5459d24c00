"""A plan that evens a cluster out, shown, and written as the file that `execute` carries out."""

from __future__ import annotations

from pathlib import Path

from headwater.balance.planner import PlanRequest, make_plan
from headwater.cli.brokers.measured_load import measure
from headwater.cli.brokers.plan_output import print_plan
from headwater.cli.reassign.moves_file import OPTION, moves_text
from headwater.client.connection.cluster_connection import ClusterConnection


async def plan_moves(
    connection: ClusterConnection, watch_s: float, rate_bytes: int, path: str | None
) -> None:
    """Show what `brokers balance --dry-run` shows, and write it if a path is given."""
    plan = make_plan(await measure(connection, watch_s), PlanRequest())
    print_plan(plan, rate_bytes, 0)
    if path is None:
        return
    if not plan.moves:
        print(f"{path} was not written.")
        return
    Path(path).write_text(moves_text({move.topic_partition: move.after for move in plan.moves}))
    print(f"Written to {path}. To carry it out: `headwater reassign execute {OPTION} {path}`.")
