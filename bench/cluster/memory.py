"""What a cluster's processes hold in memory: the brokers, and apart from them who coordinates."""

from __future__ import annotations

from bench.broker.results import Goal, Row
from bench.broker.sizes import MEGABYTE
from bench.cluster.clusters import Cluster
from bench.cluster.run import Run
from bench.rounds import Comparison

SECTION = "Resident memory"
_GOAL = Goal(ratio_max=0.2)


def measure(run: Run, clusters: tuple[Cluster, ...], when: str) -> None:
    """Add the rows of this moment."""
    run.attempt(f"Memory {when}", lambda: _add_rows(run, clusters, when))


def _add_rows(run: Run, clusters: tuple[Cluster, ...], when: str) -> None:
    brokers = [[cluster.brokers_resident_bytes() / MEGABYTE] for cluster in clusters]
    others = [[cluster.coordination_resident_bytes() / MEGABYTE] for cluster in clusters]
    run.results.rows.append(
        Row(SECTION, f"Three brokers, {when}", "MB", Comparison(*brokers), _GOAL)
    )
    names = " / ".join(cluster.coordination_name for cluster in clusters)
    run.results.rows.append(Row(SECTION, f"{names}, {when}", "MB", Comparison(*others)))
