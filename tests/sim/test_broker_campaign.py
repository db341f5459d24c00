from tests.support.broker_campaign import BrokerCampaign
from tests.support.hash_seeds import hashes_in_processes
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
    seeds = rounds(small=4, full=40)
    one, other = hashes_in_processes("broker_campaign", "BrokerCampaign", seeds)
    assert one == other and len(one) == seeds
