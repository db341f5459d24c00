import os
import subprocess
import sys
from pathlib import Path

from tests.support.broker_campaign import BrokerCampaign
from tests.support.tiers import rounds


def test_the_broker_keeps_its_promises_whatever_happens() -> None:
    crash_count = acknowledged_count = 0
    for seed in range(rounds(small=16, full=400)):
        campaign = BrokerCampaign(seed)
        campaign.run()
        crash_count += campaign.crash_count
        acknowledged_count += campaign.world.history.acknowledged_count
    # The campaign would prove little without crashes and acknowledgements.
    assert crash_count > 80
    assert acknowledged_count > 1000


def test_two_runs_of_a_seed_are_the_same_to_the_last_packet() -> None:
    for seed in range(rounds(small=3, full=30)):
        hashes = {BrokerCampaign(seed).run() for _ in range(2)}
        assert len(hashes) == 1, f"seed {seed}"
    assert BrokerCampaign(0).run() != BrokerCampaign(1).run()


def test_a_seed_is_the_same_in_another_process() -> None:
    """Where sets are ordered otherwise, because text has other hashes there."""
    seeds = rounds(small=4, full=40)
    script = (
        "from tests.support.broker_campaign import BrokerCampaign\n"
        f"print([BrokerCampaign(seed).run() for seed in range({seeds})])\n"
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
