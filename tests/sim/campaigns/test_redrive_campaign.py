"""Dead letters sent back on a cluster in trouble, and the bugs that this must find."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pytest

from headwater.delivery.redrive.outgoing import Outgoing
from headwater.delivery.redrive.sending import Sending
from headwater.delivery.redrive.tasks.offset_ranges import GrowingRanges
from headwater.delivery.redrive.tasks.task import Progress, RedriveTask, State, Wanted
from headwater.delivery.redrive.tasks.task_topic import Orders, TaskBook, TaskTopic
from headwater.sim.campaigns.redrives import RedriveCampaign
from tests.support.tiers import full_tier, rounds

#: The seeds are run in so many parts, which may run at the same time.
PARTS = rounds(small=1, full=4)
#: The few of the small tier show much.
SEEDS = list(range(100)) if full_tier() else [0, 1, 2]

Plant = Callable[[pytest.MonkeyPatch], None]


@pytest.mark.parametrize("part", range(PARTS))
def test_each_letter_is_sent_back_once_whatever_happens(part: int) -> None:
    crash_count = kill_count = stall_count = resumed_count = letter_count = task_count = 0
    for seed in SEEDS[part::PARTS]:
        campaign = RedriveCampaign(seed)
        campaign.run()
        crash_count += campaign.crash_count
        kill_count += campaign.redrive_kill_count
        stall_count += campaign.stall_count
        letter_count += campaign.letter_count
        resumed_count += sum(ledger.resumed_count for ledger in campaign.redrives)
        task_count += sum(ledger.task_count for ledger in campaign.redrives)
    # The campaign would prove little without all of these, of which there are far more.
    assert crash_count > 2
    assert kill_count > 4
    assert stall_count > 0
    assert resumed_count > 2
    assert letter_count > 90
    assert task_count > 12


def tells_progress_after_the_letters(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a transaction of its own: who resumes goes back by what was sent between the two."""
    transact = Sending.transact

    async def transact_twice(
        self: Sending,
        letters: Sequence[Outgoing],
        progress: Progress,
        ranges: Mapping[int, GrowingRanges],
    ) -> None:
        if letters:
            await self._producer.begin_transaction()
            for topic, key, value, headers, partition in letters:
                await self._producer.send(topic, value, key, partition=partition, headers=headers)
            await self._producer.commit_transaction()
        await transact(self, [], progress, ranges)

    monkeypatch.setattr(Sending, "transact", transact_twice)


def tells_progress_before_the_letters(monkeypatch: pytest.MonkeyPatch) -> None:
    transact = Sending.transact

    async def transact_twice(
        self: Sending,
        letters: Sequence[Outgoing],
        progress: Progress,
        ranges: Mapping[int, GrowingRanges],
    ) -> None:
        await transact(self, [], progress, ranges)
        if letters:
            await self._producer.begin_transaction()
            for topic, key, value, headers, partition in letters:
                await self._producer.send(topic, value, key, partition=partition, headers=headers)
            await self._producer.commit_transaction()

    monkeypatch.setattr(Sending, "transact", transact_twice)


def does_not_hear_that_it_shall_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    latest = Orders.latest

    async def ignore(self: Orders) -> RedriveTask | None:
        task = await latest(self)
        if task is not None and task.wanted is Wanted.STOPPED:
            object.__setattr__(task, "wanted", Wanted.RUNNING)
        return task

    monkeypatch.setattr(Orders, "latest", ignore)


def takes_up_what_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who takes a task over believes what it read of it before."""
    read = TaskTopic.read

    async def believe(self: TaskTopic, *, wait_until_stable: bool = False) -> TaskBook:
        book = await read(self, wait_until_stable=wait_until_stable)
        if wait_until_stable:
            for progress in book.progress.values():
                progress.state = State.INTERRUPTED
        return book

    monkeypatch.setattr(TaskTopic, "read", believe)


#: Each with the promises that it may break, and the seeds that show it.
PLANTED: list[tuple[Plant, str, list[int]]] = [
    (tells_progress_after_the_letters, "sent back once", [1, 2, 3]),
    (tells_progress_before_the_letters, "no letter is lost", [2, 3, 4, 5]),
    (does_not_hear_that_it_shall_stop, "a stopped task sends no more", [2, 3, 4, 5]),
    (takes_up_what_has_ended, "what has ended stays so", [2, 3, 4, 5]),
]


@pytest.mark.parametrize(("plant", "promise", "seeds"), PLANTED)
def test_planted_bugs_are_found(
    plant: Plant, promise: str, seeds: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    with pytest.raises(AssertionError, match=promise):
        for seed in seeds:
            RedriveCampaign(seed).run()
