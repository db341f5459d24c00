"""What one partition knows of its deliveries, against a model, whatever happens to its log.

A campaign compares three things key by key: what was kept from event to event, what the log alone
says when it is read anew, and a dictionary that was told every batch. See `log_campaign`.
"""

from collections.abc import Callable

import pytest

from headwater.sim.campaigns.delays.log_campaign import DelayLogCampaign
from tests.support.models import planted_delay_bugs as bugs
from tests.support.tiers import rounds

Plant = Callable[[pytest.MonkeyPatch], None]

#: A bug that this many seeds do not find would stay hidden; each shows in one of a dozen or so.
SEEDS_MAX = 150
#: One bug shows in many ways, each of which somebody who waits for a message would mind.
BROKEN = (
    "what was kept|read anew|from its checkpoint|comes first|in order|is not|would go|would stay|"
    "rounds are not enough|has no message"
)


def test_everybody_who_reads_the_log_knows_what_waits() -> None:
    crash_count = rescan_count = delivered_count = rolled_count = cancelled_count = 0
    for seed in range(rounds(small=20, full=600)):
        campaign = DelayLogCampaign(seed)
        campaign.run()
        crash_count += campaign.crash_count
        rescan_count += campaign.rescan_count
        delivered_count += len(campaign.model.copies)
        cancelled_count += len(campaign.model.cancelled)
        rolled_count += len(campaign.model.rolled)
    # The campaign would prove little without all of these, of which there are far more.
    assert crash_count > 60
    assert rescan_count > 70
    assert delivered_count > 150
    assert cancelled_count > 20
    assert rolled_count > 0


@pytest.mark.parametrize(
    ("plant", "first_seed"),
    [
        (bugs.forget_the_watermark_when_arming, 0),
        (bugs.arm_transactions_at_their_own_offset, 2),
        (bugs.note_before_the_append, 0),
        (bugs.roll_without_the_index, 0),
        (bugs.lose_rolled_messages_when_the_first_is_gone, 207),
        (bugs.trust_an_index_past_its_checkpoint, 1),
        (bugs.trust_a_checkpoint_of_a_lost_end, 5),
        (bugs.count_what_was_never_seen, 23),
        (bugs.deliver_what_was_deleted, 13),
        (bugs.keep_what_was_cut_off, 0),
    ],
)
def test_a_planted_bug_is_found(
    plant: Plant, first_seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first seed is one that used to find it, to save time."""
    plant(monkeypatch)
    with pytest.raises(AssertionError, match=BROKEN) as found:
        for seed in range(first_seed, first_seed + SEEDS_MAX):
            DelayLogCampaign(seed).run()
    assert str(found.value).startswith("seed ")
