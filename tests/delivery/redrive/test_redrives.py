"""Redrives on a cluster: what is sent, what is not, and how tasks are steered."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from headwater import KafkaError, Producer
from headwater.base.clocks import SystemClock
from headwater.base.message_id import MessageId
from headwater.delivery import AsyncRedrives, Edits, Letter, LetterFilter, To
from headwater.delivery.redrive import pace
from headwater.delivery.redrive.outgoing import Outgoing
from headwater.delivery.redrive.tasks.task import RedriveTask, State
from tests.support.async_tests import run_async
from tests.support.brokers.clusters import KINDS, Cluster, running_cluster
from tests.support.redrives import LetterBox
from tests.support.values.dead_letters import our_headers
from tests.support.waiting import eventually


@pytest.fixture(scope="module", params=KINDS)
def cluster(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    settings = {"auto.create.topics.enable": "true", "transaction.state.log.num.partitions": "3"}
    yield from running_cluster(request.param, tmp_path_factory.mktemp("cluster"), settings)


@pytest.fixture
def box(cluster: Cluster) -> LetterBox:
    return LetterBox(cluster)


@pytest.fixture
def small_transactions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "BATCH_LETTERS_MAX", 7)


class Running:
    """A task in a thread of its own."""

    def __init__(self, box: LetterBox, plan_rate: float) -> None:
        self.box = box
        self.ended: list[RedriveTask | BaseException] = []
        self.seen: list[RedriveTask] = []
        self._thread = threading.Thread(target=self._run, args=(plan_rate,), daemon=True)
        self._thread.start()
        eventually(lambda: self.seen and self.seen[-1].progress.counts.sent > 0)

    def _run(self, rate: float) -> None:
        try:
            self.ended.append(
                self.box.redrives.run(self.box.plan(rate=rate), on_progress=self.seen.append)
            )
        except BaseException as error:
            self.ended.append(error)

    @property
    def id(self) -> str:
        return self.seen[0].id

    def state(self) -> State:
        return self.box.redrives.task(self.id).state(SystemClock().wall_ms())

    def end(self) -> RedriveTask:
        self._thread.join(30)
        (ended,) = self.ended
        assert isinstance(ended, RedriveTask), ended
        return ended


def test_letters_go_back_as_they_were_and_only_once(box: LetterBox) -> None:
    box.fill(range(10))
    census = box.redrives.preview(box.plan())
    assert (census.counts.sent, dict(census.by_topic)) == (10, {box.orders: 10})
    assert (dict(census.by_error), dict(census.by_group)) == ({"Refused": 10}, {box.group: 10})
    assert box.read(box.orders) == [], "a dry run sends nothing"

    task = box.redrives.run(box.plan())
    assert (task.progress.state, task.progress.counts.sent, task.share_done) == ("done", 10, 1.0)
    sent = {int(record.value): record for record in box.read(box.orders)}
    assert sorted(sent) == list(range(10))
    assert (sent[3].key, sent[3].partition) == (b"key-3", 0)
    assert sent[3].headers == (
        ("trace", b"abc"),
        ("headwater-origin", f"{box.orders}-0@3".encode()),
        ("headwater-redrives", b"1"),
    )

    again = box.redrives.run(box.plan())
    assert (again.progress.counts.sent, again.progress.counts.already) == (0, 10)
    forced = box.redrives.run(box.plan(again=True))
    assert forced.progress.counts.sent == 10
    assert len(box.values(box.orders)) == 20
    told = [(each.id, each.state(SystemClock().wall_ms())) for each in box.redrives.tasks()]
    assert [(each.id, State.DONE) for each in (task, again, forced)] == told[-3:]


def test_a_filtered_task_leaves_the_others_to_the_next(box: LetterBox) -> None:
    box.fill(range(0, 20, 2), error="timeout")
    box.fill(range(1, 20, 2), error="no money")
    first = box.redrives.run(box.plan(filter=LetterFilter(error="timeout")))
    assert (first.progress.counts.sent, first.progress.counts.other) == (10, 10)
    box.fill(range(20, 25))
    second = box.redrives.run(box.plan())
    assert (second.progress.counts.sent, second.progress.counts.already) == (15, 10)
    assert box.values(box.orders) == list(range(25))


def test_to_the_retry_topic_of_the_group(box: LetterBox) -> None:
    box.fill(range(3))
    box.redrives.run(box.plan(To.RETRY))
    assert box.read(box.orders) == []
    headers = dict(box.read(box.retry)[0].headers)
    assert headers["headwater-retry-after"] == b"0ms"
    assert not {"headwater-attempts", "headwater-dead", "headwater-error"} & headers.keys()


def test_letters_can_be_edited(box: LetterBox) -> None:
    box.fill(range(4))
    other = f"{box.orders}-fixed"
    box.create(other)

    def edit(outgoing: Outgoing, letter: Letter) -> Outgoing | None:
        if letter.record.value == b"2":
            return None
        # Neither another topic nor other headers of ours lead around the guards.
        return outgoing._replace(
            topic=box.dlq, value=(outgoing.value or b"") + b"!", headers=outgoing.headers[-1:]
        )

    edits = Edits(key=b"k", headers=(("by", b"me"),), removed_headers=("trace",))
    task = box.redrives.run(box.plan(To.TOPIC, topic=other, edits=edits), edit)
    assert (task.progress.counts.sent, task.progress.counts.left_out) == (3, 1)
    records = box.read(other)
    assert sorted(record.value for record in records) == [b"0!", b"1!", b"3!"]
    assert {record.key for record in records} == {b"k"}
    assert dict(records[0].headers).keys() == {"by", "headwater-origin", "headwater-redrives"}
    with pytest.raises(KafkaError, match="is done: begin another"):
        box.redrives.resume(task.id, edit)


def test_what_goes_round_is_left_and_so_is_what_has_no_way_back(box: LetterBox) -> None:
    with Producer(bootstrap_servers=box.bootstrap) as producer:
        for headers in (
            [*our_headers(0, topic=box.orders), ("headwater-redrives", b"3")],
            [*our_headers(1, topic=box.orders), ("headwater-redrives", b"2")],
            [*our_headers(2, topic=box.retry, group=box.group)],
            [*our_headers(3, topic="nowhere-at-all")],
            [*our_headers(4, topic="__consumer_offsets")],
            [("plain", b"x")],
        ):
            producer.send(box.dlq, b"1", headers=headers)
    counts = box.redrives.run(box.plan()).progress.counts
    assert (counts.loops, counts.sent, counts.homeless, counts.refused) == (1, 1, 2, 2)
    (record,) = box.read(box.orders)
    assert dict(record.headers)["headwater-redrives"] == b"3"
    task = box.redrives.tasks()[-1]
    assert any("There is no topic 'nowhere-at-all'" in each for each in task.progress.complaints)
    assert any("where these letters were at first" in each for each in task.progress.complaints)


def test_targets_that_make_no_sense_are_refused(box: LetterBox) -> None:
    with pytest.raises(KafkaError, match="go round for ever"):
        box.plan(To.TOPIC, topic=box.dlq)
    with pytest.raises(KafkaError, match="There is no topic 'nowhere'"):
        box.redrives.run(box.plan(To.TOPIC, topic="nowhere"))
    with pytest.raises(KafkaError, match=r"There is no topic 'dlq\.nobody'"):
        box.redrives.run(replace(box.plan(), source="dlq.nobody"))
    with pytest.raises(KafkaError, match="There is no redrive task 'x'"):
        box.redrives.pause("x")


def test_a_letter_that_is_refused_holds_up_no_other(box: LetterBox) -> None:
    box.fill(range(9))
    # No compression makes it small enough.
    large = random.Random(1).randbytes(2 << 20)

    def edit(outgoing: Outgoing, letter: Letter) -> Outgoing | None:
        return outgoing._replace(value=large) if letter.record.value == b"4" else outgoing

    counts = box.redrives.run(box.plan(), edit).progress.counts
    assert (counts.read, counts.sent, counts.refused) == (9, 8, 1)
    assert box.values(box.orders) == [0, 1, 2, 3, 5, 6, 7, 8]
    later = box.redrives.run(box.plan())
    assert (later.progress.counts.sent, later.progress.counts.already) == (1, 8)


def test_pause_resume_stop_and_one_task_a_topic(box: LetterBox) -> None:
    box.fill(range(400))
    running = Running(box, plan_rate=40)
    with pytest.raises(KafkaError, match=f"The task {running.id} of '{box.dlq}' runs"):
        box.redrives.run(box.plan())
    box.redrives.pause(running.id)
    eventually(lambda: running.state() is State.PAUSED)
    while_paused = len(box.values(box.orders))
    with pytest.raises(KafkaError, match="is paused: wait for it, or stop it"):
        box.redrives.run(box.plan())
    assert len(box.values(box.orders)) == while_paused
    box.redrives.resume(running.id)
    eventually(lambda: len(box.values(box.orders)) > while_paused)
    box.redrives.stop(running.id)
    stopped = running.end()
    assert stopped.progress.state is State.STOPPED
    sent = stopped.progress.counts.sent
    assert while_paused < sent == len(box.values(box.orders)) < 400
    with pytest.raises(KafkaError, match="is stopped"):
        box.redrives.resume(running.id)
    rest = box.redrives.run(box.plan())
    assert rest.progress.counts.sent == 400 - sent
    assert box.values(box.orders) == list(range(400))


def test_a_rate_is_kept(box: LetterBox) -> None:
    box.fill(range(30))
    begun_ms = SystemClock().wall_ms()
    task = box.redrives.run(box.plan(rate=20))
    # The first batch goes at once, and the last one need not be waited for.
    assert task.progress.beat_ms - begun_ms >= 1000 * (30 - 10) / 20 - 50
    assert task.progress.counts.sent == 30


def test_what_a_filter_leaves_out_costs_no_time_of_a_rate(box: LetterBox) -> None:
    box.fill(range(60), error="no money")
    box.fill(range(60, 63), error="timeout")
    seen: list[RedriveTask] = []
    task = box.redrives.run(
        box.plan(rate=2, filter=LetterFilter(error="timeout")), on_progress=seen.append
    )
    assert (task.progress.counts.sent, task.progress.counts.other) == (3, 60)
    assert box.values(box.orders) == [60, 61, 62]
    assert len(seen) < 15, "a transaction for each letter that is left out"
    waited_ms = task.progress.beat_ms - seen[0].progress.beat_ms
    assert waited_ms >= 1000 * 2 / 2 - 50, "the rate is still that of what is sent"


@run_async
async def test_who_is_interrupted_says_so_and_is_carried_on(
    box: LetterBox, small_transactions: None
) -> None:
    box.fill(range(60))
    redrives = AsyncRedrives(bootstrap_servers=box.bootstrap)
    seen: list[RedriveTask] = []

    def cancel(task: RedriveTask) -> None:
        seen.append(task)
        if len(seen) in (4, 9):
            running.cancel()

    running = asyncio.ensure_future(redrives.run(box.plan(), on_progress=cancel))
    with pytest.raises(asyncio.CancelledError):
        await running
    task_id = seen[0].id
    assert (await redrives.task(task_id)).progress.state is State.INTERRUPTED
    running = asyncio.ensure_future(redrives.resume(task_id, on_progress=cancel))
    with pytest.raises(asyncio.CancelledError):
        await running
    done = await redrives.resume(task_id)
    assert (done.progress.state, done.progress.counts.sent) == (State.DONE, 60)
    assert await asyncio.to_thread(box.values, box.orders) == list(range(60))


def test_an_edit_that_fails_leaves_a_task_that_can_be_resumed(box: LetterBox) -> None:
    box.fill(range(5))

    def fail(outgoing: Outgoing, letter: Letter) -> Outgoing | None:
        raise ValueError("a mistake")

    with pytest.raises(ValueError, match="a mistake"):
        box.redrives.run(box.plan(), fail)
    task = box.redrives.tasks()[-1]
    assert (task.state(SystemClock().wall_ms()), task.progress.error) == (State.FAILED, "a mistake")
    with pytest.raises(KafkaError, match="has to be given again"):
        box.redrives.resume(task.id)
    done = box.redrives.resume(task.id, lambda outgoing, letter: outgoing)
    assert (done.progress.state, done.progress.error) == (State.DONE, None)
    assert box.values(box.orders) == list(range(5))


def test_letters_are_listed_kept_in_files_and_deleted(box: LetterBox, tmp_path: Path) -> None:
    box.fill(range(6), error="timeout")
    box.fill(range(6, 8), error="no money")
    (seen,) = [each for each in box.redrives.topics() if each.topic == box.dlq]
    assert (seen.letters, seen.is_exact, seen.group) == (8, True, box.group)
    assert (seen.top_error, seen.top_error_share) == ("Refused", 1.0)
    assert seen.oldest_ms is not None and seen.newest_ms is not None
    assert seen.oldest_ms <= seen.newest_ms

    path, other = str(tmp_path / "letters.jsonl"), f"{box.dlq}-kept"
    box.create(other)
    assert box.redrives.export(box.dlq, path, LetterFilter(error="timeout")) == 6
    assert box.redrives.import_letters(path, other) == 6
    kept = {record.value: record for record in box.read(other)}
    for record in box.read(box.dlq):
        if record.value in kept:
            same = kept[record.value]
            assert (same.key, same.headers) == (record.key, record.headers)
            assert same.timestamp == record.timestamp
    assert sorted(kept) == [b"%d" % number for number in range(6)]

    third = MessageId(box.dlq, 0, 2)
    assert box.redrives.purge(box.dlq, box.redrives.old_letters(box.dlq, before=third)) == 2
    assert box.values(box.dlq) == [1, 3, 4, 5, 6, 7]
    assert box.redrives.purge(box.dlq, box.redrives.old_letters(box.dlq)) == 6
    assert box.redrives.old_letters(box.dlq) == {}
    with pytest.raises(KafkaError, match="is not of the topic"):
        box.redrives.old_letters(box.dlq, before=MessageId("other", 0, 2))
    with pytest.raises(KafkaError, match="has no partition 7"):
        box.redrives.old_letters(box.dlq, before=MessageId(box.dlq, 7, 2))
