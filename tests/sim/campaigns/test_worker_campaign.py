"""Workers on a cluster in trouble, and the bugs that this must find."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import pytest

from headwater.base.ids import TopicPartition
from headwater.client.consumer.async_consumer import AsyncConsumer
from headwater.client.consumer.membership.membership import GroupIdentity
from headwater.client.consumer.workers.tracker import OffsetTracker
from headwater.client.failures import failed_record
from headwater.delay.dead_letters.moves import DeadLetter, StillWait
from headwater.delivery.dead_letter_moves import TransactionalMoves
from headwater.delivery.worker import async_worker
from headwater.delivery.worker.decisions.lanes import KeyLanes, Turn
from headwater.delivery.worker.decisions.unsettled import Settlement
from headwater.delivery.worker.decisions.work import Work
from headwater.delivery.worker.dispatch import make_handle
from headwater.delivery.worker.loop import WorkerLoop
from headwater.delivery.worker.settler import Settler
from headwater.sim.campaigns.workers import STOCK, WORKERS, WorkerCampaign
from headwater.storage.append import retrying
from headwater.wire.delayed.headers import ATTEMPTS_HEADER
from tests.support.tiers import full_tier, rounds

#: The seeds are run in so many parts, which may run at the same time.
PARTS = rounds(small=1, full=4)
#: The few of the small tier show much.
SEEDS = list(range(200)) if full_tier() else [0, 1, 5]

Plant = Callable[[pytest.MonkeyPatch], None]


@pytest.mark.parametrize("part", range(PARTS))
def test_each_record_has_one_outcome_whatever_happens(part: int) -> None:
    kill_count = crash_count = run_count = shown_count = dead_count = again_count = 0
    for seed in SEEDS[part::PARTS]:
        campaign = WorkerCampaign(seed)
        campaign.run()
        crash_count += campaign.crash_count
        kill_count += campaign.program_kill_count
        for group in (WORKERS, STOCK):
            outcomes, runs = campaign.outcomes[group], campaign.ledgers[group].runs
            run_count += len(runs)
            shown_count += outcomes.shown.total()
            dead_count += outcomes.dead.total()
            again_count += len(runs) - len({(run.place, run.attempt) for run in runs})
    # The campaign would prove little without all of these, of which there are far more.
    assert crash_count > 2
    assert kill_count > 2
    assert run_count > 60
    assert shown_count > 15
    assert dead_count > 10
    assert again_count > 0


def commits_before_failures_are_written(monkeypatch: pytest.MonkeyPatch) -> None:
    transact = Settler._transact

    async def commit_first(self: Settler, settlement: Settlement) -> bool:
        await self._consumer.commit(settlement.offsets, 20.0)
        return await transact(self, settlement)

    monkeypatch.setattr(Settler, "_transact", commit_first)


def sends_failures_outside_of_the_transaction(monkeypatch: pytest.MonkeyPatch) -> None:
    async def send(self: Settler, settlement: Settlement) -> bool:
        config = {name: value for name, value in self._config.items() if "transact" not in name}
        producer = self._make_producer(config)
        await producer.start()
        for letter in settlement.letters:
            topic, value, key = letter.produced.topic, letter.produced.value, letter.produced.key
            headers = letter.produced.headers
            await (await producer.send(topic, value, key, headers=headers))
        await self._consumer.commit(settlement.offsets, 20.0)
        await producer.close(0)
        return True

    monkeypatch.setattr(Settler, "_transact", send)


def counts_attempts_from_one_again(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers, dropped = failed_record._NUMBERS, failed_record.DROPPED
    monkeypatch.setattr(failed_record, "_NUMBERS", numbers - {ATTEMPTS_HEADER})
    monkeypatch.setattr(failed_record, "DROPPED", dropped | {ATTEMPTS_HEADER})


def shows_retries_early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retrying, "_delay_ms", lambda *_: 0)
    monkeypatch.setattr(retrying, "_asked_ms", lambda *_: 0)


def commits_for_who_is_no_member(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody is fenced: who has lost its partitions commits all the same."""
    monkeypatch.setattr(AsyncConsumer, "group_identity", lambda _: GroupIdentity(WORKERS))


def drops_what_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Dead letters are taken out of the retry topic, and put where nobody looks for them."""
    move = TransactionalMoves.move

    async def cancel(
        self: TransactionalMoves, _: str, letters: list[DeadLetter], still_wait: StillWait
    ) -> None:
        await move(self, f"dlq.{STOCK}", letters, still_wait)

    monkeypatch.setattr(TransactionalMoves, "move", cancel)


def commits_past_what_is_not_done(monkeypatch: pytest.MonkeyPatch) -> None:
    begin = OffsetTracker.begin

    def begin_and_finish(self: OffsetTracker, offset: int, leader_epoch: int = -1) -> None:
        begin(self, offset, leader_epoch)
        finish(self, offset)

    finish = OffsetTracker.finish
    monkeypatch.setattr(OffsetTracker, "begin", begin_and_finish)
    monkeypatch.setattr(OffsetTracker, "finish", lambda *_: None)


def lets_others_overtake(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is tried again is put behind the other records of its key."""
    put_back = KeyLanes.put_back

    def put_behind(self: KeyLanes, turn: Turn, due_s: float) -> None:
        put_back(self, turn, due_s)
        self._lanes[turn.lane].rotate(-1)

    monkeypatch.setattr(KeyLanes, "put_back", put_behind)


def tries_again_unasked(monkeypatch: pytest.MonkeyPatch) -> None:
    decide = Work.decide

    def decide_otherwise(self: Work, record: Any, error: Exception, attempt: int) -> Any:
        return 0.0 if attempt == 1 else decide(self, record, error, attempt)

    monkeypatch.setattr(Work, "decide", decide_otherwise)


def handles_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """What went well is done once more, to be sure."""

    def make_eager(*given: Any) -> Any:
        handle = make_handle(*given)

        async def handle_twice(record: Any) -> None:
            await handle(record)
            await handle(record)

        return handle_twice

    monkeypatch.setattr(async_worker, "make_handle", make_eager)


def begins_at_the_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who is given a partition reads it from its first record on."""
    assigned = WorkerLoop.assigned

    async def go_back(
        self: WorkerLoop, partitions: frozenset[TopicPartition], retry_topics: Collection[str]
    ) -> None:
        await assigned(self, partitions, retry_topics)
        await self._consumer.seek_to_beginning(sorted(partitions))

    monkeypatch.setattr(WorkerLoop, "assigned", go_back)


#: Each with the promises that it may break, and the seeds that show it.
PLANTED: list[tuple[Plant, str, list[int]]] = [
    (commits_before_failures_are_written, "no record is lost", [5, 7, 9]),
    (sends_failures_outside_of_the_transaction, "one outcome", [2, 13]),
    (counts_attempts_from_one_again, "one outcome", [0]),
    (shows_retries_early, "tried again early", [0]),
    (commits_for_who_is_no_member, "one outcome|no record is lost|go back", [1]),
    (drops_what_is_given_up, "no record is lost|sent on as it came", [0]),
    (commits_past_what_is_not_done, "no record is lost", [0]),
    (lets_others_overtake, "records of a key", [14, 16, 17]),
    (tries_again_unasked, "tried again early", [0]),
    (handles_twice, "runs again only", [0]),
    (begins_at_the_beginning, "is not handled again", [3]),
]


@pytest.mark.parametrize(("plant", "promise", "seeds"), PLANTED)
def test_planted_bugs_are_found(
    plant: Plant, promise: str, seeds: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    with pytest.raises(AssertionError, match=promise):
        for seed in seeds:
            WorkerCampaign(seed).run()
