"""Campaigns in processes in which sets are ordered otherwise, as text has other hashes there.

Python draws the hash of text anew in every process. What iterates over a set of text, or of objects
that are hashed by their address, goes another way in each of them, and one seed no longer brings a
failure back. So every campaign must have one trace, whatever PYTHONHASHSEED is.

    python -m tests.support.hash_seeds "broker 0" "cluster 7"     prints the hashes of two runs
"""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from argparse import ArgumentParser
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from headwater.sim.campaigns.audit import AuditCampaign
from headwater.sim.campaigns.broker import BrokerCampaign
from headwater.sim.campaigns.client import ClientCampaign
from headwater.sim.campaigns.cluster import ClusterCampaign
from headwater.sim.campaigns.cluster_copies import ClusterCopyCampaign
from headwater.sim.campaigns.delays.campaign import DelayCampaign
from headwater.sim.campaigns.delays.log_campaign import DelayLogCampaign
from headwater.sim.campaigns.directory import DirectoryCampaign
from headwater.sim.campaigns.drains import DrainCampaign
from headwater.sim.campaigns.exactly_once import ExactlyOnceCampaign
from headwater.sim.campaigns.log import LogCampaign
from headwater.sim.campaigns.reassignments import ReassignmentCampaign
from headwater.sim.campaigns.redrives import RedriveCampaign
from headwater.sim.campaigns.replicas import ReplicaCampaign
from headwater.sim.campaigns.retries import RetryCampaign
from headwater.sim.campaigns.transactions import TransactionCampaign
from headwater.sim.campaigns.workers import WorkerCampaign
from tests.support.worlds.membership_campaign import KINDS, MembershipCampaign

#: By run, as "campaign seed", the hash of its trace.
Hashes = dict[str, str]

_TIMEOUT_S = 1800.0


def _members(seed: int) -> str:
    kind = list(KINDS)[seed % len(KINDS)]
    return MembershipCampaign(kind, seed).run()


#: Each runs a seed and returns the hash of its trace.
CAMPAIGNS: Mapping[str, Callable[[int], str]] = {
    "log": lambda seed: LogCampaign(seed).run(60),
    "transactions": lambda seed: TransactionCampaign(seed).run(80),
    "directories": lambda seed: DirectoryCampaign(seed).run(80),
    "replicas": lambda seed: ReplicaCampaign(seed).run(150),
    "members": _members,
    "broker": lambda seed: BrokerCampaign(seed).run(),
    "exactly-once": lambda seed: ExactlyOnceCampaign(seed).run(),
    "client": lambda seed: ClientCampaign(seed).run(),
    "cluster": lambda seed: ClusterCampaign(seed).run(),
    "cluster-copies": lambda seed: ClusterCopyCampaign(seed).run(event_count=12),
    "delay-log": lambda seed: DelayLogCampaign(seed).run(80),
    "delays": lambda seed: DelayCampaign(seed).run(event_count=6),
    "audit": lambda seed: AuditCampaign(seed).run(event_count=6),
    "retries": lambda seed: RetryCampaign(seed).run(),
    "workers": lambda seed: WorkerCampaign(seed).run(event_count=5),
    "redrives": lambda seed: RedriveCampaign(seed).run(event_count=4),
    "reassignments": lambda seed: ReassignmentCampaign(seed).run(event_count=5),
    "drains": lambda seed: DrainCampaign(seed).run(event_count=4),
}


def run_in_processes(
    hash_seeds: Sequence[int], names: Sequence[str], seeds: Sequence[int], plant: str | None = None
) -> list[Hashes]:
    """What each process found, all processes at once.

    Every other process goes backwards, so that what a campaign leaves behind for the next one is
    found too. `plant` is a function, as `module:name`, that is called before anything else.
    """
    running = []
    for number, hash_seed in enumerate(hash_seeds):
        runs = [f"{name} {seed}" for name in names for seed in seeds]
        command = [sys.executable, "-m", __name__, *(runs[::-1] if number % 2 else runs)]
        running.append(
            subprocess.Popen(
                command if plant is None else [*command, "--plant", plant],
                cwd=Path(__file__).parents[2],
                env={**os.environ, "PYTHONHASHSEED": str(hash_seed)},
                stdout=subprocess.PIPE,
                text=True,
            )
        )
    found = [process.communicate(timeout=_TIMEOUT_S)[0] for process in running]
    assert [process.returncode for process in running] == [0] * len(running)
    return [dict(line.split(": ") for line in text.splitlines()) for text in found]


def main() -> None:
    """In such a process: a line for each run."""
    parser = ArgumentParser()
    parser.add_argument("runs", nargs="+")
    parser.add_argument("--plant")
    options = parser.parse_args()
    if options.plant is not None:
        module, _, function = options.plant.partition(":")
        getattr(importlib.import_module(module), function)()
    for run in options.runs:
        name, seed = run.split()
        print(f"{run}: {CAMPAIGNS[name](int(seed))}", flush=True)


if __name__ == "__main__":
    main()
