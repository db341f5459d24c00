import os
import subprocess
import sys
from pathlib import Path

from headwater.sim.transaction_history import Ending
from tests.support.exactly_once_campaign import ExactlyOnceCampaign
from tests.support.tiers import rounds


def test_everything_is_copied_once_whatever_happens() -> None:
    broker_crash_count = client_crash_count = generation_count = 0
    endings = dict.fromkeys(Ending, 0)
    for seed in range(rounds(small=8, full=300)):
        campaign = ExactlyOnceCampaign(seed)
        campaign.run()
        broker_crash_count += campaign.crash_count
        client_crash_count += campaign.client_crash_count
        generation_count += campaign.groups.generation_count
        for ending in Ending:
            endings[ending] += campaign.transactions.count(ending)
    # The campaign would prove little without all of these.
    assert broker_crash_count > 30
    assert client_crash_count > 5
    assert generation_count > 20
    assert endings[Ending.COMMITTED] > 50
    assert endings[Ending.ABORTED] > 5
    assert endings[Ending.UNKNOWN] > 2


def test_two_runs_of_a_seed_are_the_same_in_any_process() -> None:
    """Where sets are ordered otherwise, because text has other hashes there."""
    seeds = rounds(small=3, full=30)
    script = (
        "from tests.support.exactly_once_campaign import ExactlyOnceCampaign\n"
        f"print([ExactlyOnceCampaign(seed).run() for seed in range({seeds})])\n"
    )
    running = [
        subprocess.Popen(
            [sys.executable, "-c", script],
            cwd=Path(__file__).parents[2],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            stdout=subprocess.PIPE,
            text=True,
        )
        for hash_seed in ("1", "2")
    ]
    outputs = [process.communicate(timeout=600)[0] for process in running]
    assert [process.returncode for process in running] == [0, 0]
    assert outputs[0] == outputs[1] and outputs[0].count(",") == seeds - 1
