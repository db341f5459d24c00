"""Each promise of delayed deliveries has a bug that breaks it: the campaign must find every one.

A checker that finds nothing may be right or may be blind; these tell which. What one partition
alone shows is in `tests/delay/test_delay_state_model.py`.
"""

from collections.abc import Callable

import pytest

from headwater.delay.hand_over import HandOver
from headwater.delay.partition_delays import PartitionDelays
from headwater.sim.campaigns.delays.campaign import DelayCampaign
from headwater.storage.segments.hidden_batches import HiddenBatches
from headwater.storage.waiting_messages import WaitingMessages
from tests.support.models import planted_delay_bugs as bugs

Plant = Callable[[pytest.MonkeyPatch], None]

#: A bug that this many seeds do not find would stay hidden; each shows in one of a dozen or more.
SEEDS_MAX = 100

KNOWN = "replicas know what waits"
ORDER = "deliveries are in order|what comes first"
CANCELLED = "what was cancelled is not delivered"
LOST = "nothing is lost|what is due comes|still wait"
TWICE = "nothing is delivered twice"


def deliver_early(monkeypatch: pytest.MonkeyPatch) -> None:
    """By as much as what is due soon is read ahead."""
    run = HandOver.run
    monkeypatch.setattr(HandOver, "run", lambda self, state, now_ms: run(self, state, now_ms + 400))


def let_segments_go_with_what_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(WaitingMessages, "holds", lambda *_arguments: False)


def apply_what_was_read_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread reads the log, somebody asks meanwhile, and both take it into account."""
    ready = PartitionDelays.ready_state

    def forget_how_far(self: PartitionDelays) -> object:
        before = -1 if self._state is None else self._state.applied_offset
        state = ready(self)
        if before >= 0:
            state.applied_offset = before
        return state

    monkeypatch.setattr(PartitionDelays, "ready_state", forget_how_far)


def show_what_is_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HiddenBatches, "behind", lambda _self, _position: iter(()))


@pytest.mark.parametrize(
    ("plant", "broken", "first_seed"),
    [
        (bugs.forget_the_watermark_when_arming, f"{KNOWN}|{ORDER}", 0),
        (bugs.arm_transactions_at_their_own_offset, f"{KNOWN}|{ORDER}", 0),
        (bugs.note_before_an_append_that_fails, f"{KNOWN}|{ORDER}|{LOST}", 0),
        (bugs.roll_without_the_index, f"{KNOWN}|{LOST}|{ORDER}", 0),
        (bugs.trust_an_index_past_its_checkpoint, f"{KNOWN}|{TWICE}|{ORDER}|{CANCELLED}", 24),
        (bugs.keep_what_was_cut_off, f"{KNOWN}|{TWICE}|{ORDER}|{LOST}", 10),
        (bugs.skip_a_visible_batch, "every reader sees the same|lag comes to 0", 0),
        (apply_what_was_read_twice, f"{TWICE}|{KNOWN}", 0),
        (let_segments_go_with_what_waits, f"{KNOWN}|{LOST}|{ORDER}", 0),
        (show_what_is_hidden, "nobody sees what waits", 0),
        (deliver_early, "nothing is delivered early", 0),
    ],
)
def test_a_planted_bug_is_found(
    plant: Plant, broken: str, first_seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first seed is one that used to find it, to save time."""
    plant(monkeypatch)
    monkeypatch.setattr("headwater.sim.campaigns.cluster.HEALED_TIME_MAX_S", 20.0)
    with pytest.raises(AssertionError, match=broken) as found:
        for seed in range(first_seed, first_seed + SEEDS_MAX):
            DelayCampaign(seed).run(event_count=6)
    assert str(found.value).startswith("seed ")


def test_an_append_that_fails_is_no_bug(monkeypatch: pytest.MonkeyPatch) -> None:
    bugs.fail_some_appends(monkeypatch)
    for seed in range(2):
        DelayCampaign(seed).run(event_count=6)
