"""Retries and dead letters on a cluster in trouble, and the bugs that this must find."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from headwater.delay.dead_letters.moving import Moving
from headwater.delay.delay_state import DelayState
from headwater.delivery.dead_letter_moves import TransactionalMoves
from headwater.sim.campaigns.retries import RetryCampaign
from headwater.wire.delayed import attempts
from tests.support.tiers import full_tier, rounds

#: The seeds are run in so many parts, which may run at the same time.
PARTS = rounds(small=1, full=4)
#: The few of the small tier show much.
SEEDS = list(range(200)) if full_tier() else [9, 10, 13, 14]

Plant = Callable[[pytest.MonkeyPatch], None]


@pytest.mark.parametrize("part", range(PARTS))
def test_each_record_that_failed_comes_to_one_end_whatever_happens(part: int) -> None:
    crash_count = failure_count = moved_count = 0
    for seed in SEEDS[part::PARTS]:
        campaign = RetryCampaign(seed)
        campaign.run(event_count=6)
        crash_count += campaign.crash_count
        failure_count += len(campaign.failures)
        moved_count += campaign.moved_count
    # The campaign would prove little without all of these, of which there are far more.
    assert crash_count > 4
    assert moved_count > 60
    assert failure_count - moved_count > 60


def commits_as_a_leader_that_was(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever once led moves what its own log says waits."""
    monkeypatch.setattr(Moving, "_still_wait", lambda *_: True)


def copies_without_cancelling(monkeypatch: pytest.MonkeyPatch) -> None:
    move = TransactionalMoves.move

    async def twice(self: TransactionalMoves, *arguments: object) -> None:
        source, self._source = self._source, self._source._replace(topic="dlq.billing", partition=0)
        try:
            await move(self, *arguments)  # type: ignore[arg-type]
        finally:
            self._source = source

    monkeypatch.setattr(TransactionalMoves, "move", twice)


def forgets_the_dead_at_a_restart(monkeypatch: pytest.MonkeyPatch) -> None:
    as_json = DelayState.as_json
    monkeypatch.setattr(DelayState, "as_json", lambda self: as_json(self) | {"dead": {}})


def shows_what_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempts, "DEAD_HEADER", "another-header")


@pytest.mark.parametrize(
    ("plant", "seeds"),
    [
        (commits_as_a_leader_that_was, [78, 361, 404]),
        (copies_without_cancelling, [0]),
        (forgets_the_dead_at_a_restart, [8]),
        (shows_what_is_given_up, [0]),
    ],
)
def test_planted_bugs_are_found(
    plant: Plant, seeds: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    with pytest.raises(AssertionError, match="seed"):
        for seed in seeds:
            RetryCampaign(seed).run(event_count=6)
