"""What a worker decides: circuits, lanes, letters, notes, and what becomes of a failure."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater import OffsetAndMetadata, TopicPartition
from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.settings import SettingError
from headwater.client.consumer.record import ConsumerRecord
from headwater.delivery import DeadLetter, Retry, RetryPolicy, Worker
from headwater.delivery.worker.decisions.circuit import PROBE_RECORDS, Circuit, CircuitState
from headwater.delivery.worker.decisions.crash_notes import CrashNotes, DiedError
from headwater.delivery.worker.decisions.lanes import Turn
from headwater.delivery.worker.decisions.unsettled import Letter
from headwater.delivery.worker.decisions.work import Work
from headwater.delivery.worker.options import WorkerOptions, handlers_of, read_options
from headwater.wire.delayed.attempts import count_failure
from headwater.wire.records import TimestampType

PARTITION = TopicPartition("orders", 0)


def make_record(offset: int, key: bytes | None = b"k", partition: int = 0) -> ConsumerRecord:
    return ConsumerRecord(
        "orders", partition, offset, 0, TimestampType.CREATE_TIME, key, b"%d" % offset, (), 0
    )


def options_of(**settings: Any) -> WorkerOptions:
    return read_options("billing", handlers_of("orders", print), None, settings)  # type: ignore[arg-type]


# -- the circuit ---------------------------------------------------------------------------------


def test_a_circuit_opens_probes_and_closes() -> None:
    circuit = Circuit(0.9, 30.0)
    assert not circuit.add(0, 49, 0.0)
    assert not circuit.holds(0.0)
    assert circuit.add(0, 1, 0.0)
    assert circuit.holds(29.9)
    assert circuit.limit(500) == 500
    assert not circuit.holds(30.0)
    assert circuit.limit(500) == PROBE_RECORDS
    circuit.taken(PROBE_RECORDS)
    assert circuit.holds(30.0)
    assert circuit.add(0, PROBE_RECORDS, 31.0)
    # Twice as long.
    assert circuit.holds(90.9)
    assert not circuit.holds(91.0)
    circuit.taken(3)
    assert not circuit.add(2, 1, 92.0)
    assert circuit.state is CircuitState.CLOSED
    assert circuit.opened_count == 2


def test_pauses_double_up_to_five_minutes() -> None:
    circuit = Circuit(0.5, 30.0)
    now_s = 0.0
    circuit.add(0, 50, now_s)
    pauses = []
    for _ in range(6):
        pauses.append(circuit.pause_s)
        now_s += circuit.pause_s
        assert not circuit.holds(now_s)
        circuit.taken(1)
        assert circuit.add(0, 1, now_s)
    assert pauses == [30, 60, 120, 240, 300, 300]


def test_a_probe_whose_records_are_dropped_is_made_again() -> None:
    circuit = Circuit(0.5, 1.0)
    circuit.add(0, 50, 0.0)
    assert not circuit.holds(1.0)
    circuit.taken(5)
    assert circuit.holds(1.0)
    circuit.dropped()
    assert not circuit.holds(1.0)


def test_a_ratio_of_one_never_opens_it() -> None:
    assert not Circuit(1.0, 1.0).add(0, 1000, 0.0)


# -- what becomes of a failure -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "header"),
    [
        (OSError("x"), None),
        (Retry("x", after="2s"), "headwater-retry-after"),
        (DeadLetter("x"), "headwater-dead"),
        (KeyError("x"), "headwater-dead"),
    ],
)
def test_a_failure_is_sent_on(error: Exception, header: str | None) -> None:
    letter = Work(options_of(hopeless=[LookupError])).decide(make_record(4), error, 1)
    assert isinstance(letter, Letter)
    assert letter.is_dead == (header == "headwater-dead")
    found = dict(letter.produced.headers)  # type: ignore[arg-type]
    assert {"headwater-retry-after", "headwater-dead"} & found.keys() == {header} - {None}


def test_no_more_is_asked_for_than_the_retry_topic_allows(
    caplog: pytest.LogCaptureFixture,
) -> None:
    work = Work(options_of())
    work.asked_times.longest_ms = 40 * 86_400_000
    for asked, got in (("41d", b"40d"), ("90d", b"40d"), ("39d", b"39d")):
        letter = work.decide(make_record(4), Retry("later", after=asked), 1)
        assert isinstance(letter, Letter)
        assert dict(letter.produced.headers)["headwater-retry-after"] == got  # type: ignore[arg-type]
    (told,) = [each for each in caplog.messages if "delay.max.ms" in each]
    assert "after 41d" in told


def test_processes_that_died_count_as_attempts() -> None:
    letter = Work(options_of()).decide(make_record(4), DiedError(3), 1)
    assert isinstance(letter, Letter)
    found = dict(letter.produced.headers)  # type: ignore[arg-type]
    assert found["headwater-attempts"] == b"2", "and the broker counts the last one"
    assert found["headwater-error"] == b"the process died while handling it, 3 times"


def test_attempts_in_the_process_come_first_with_doubled_pauses() -> None:
    work = Work(options_of(in_process_attempts=4, in_process_backoff=1))
    decided = [work.decide(make_record(4), OSError("x"), attempt) for attempt in range(1, 5)]
    assert decided[:3] == [1, 2, 4]
    assert isinstance(decided[3], Letter)


def test_with_order_kept_the_policy_counts_here() -> None:
    policy = RetryPolicy(delays=[1, 10], attempts=3)
    work = Work(options_of(keep_order=True, retry=policy))
    decided = [work.decide(make_record(4), OSError("x"), attempt) for attempt in range(1, 5)]
    assert decided[:3] == [1, 10, 10]
    assert isinstance(decided[3], Letter)
    assert decided[3].is_dead
    found = dict(decided[3].produced.headers)  # type: ignore[arg-type]
    assert found["headwater-attempts"] == b"3", "and the broker counts the last one"
    assert work.decide(make_record(4), Retry(after=5), 1) == 5


def test_a_policy_is_what_the_retry_topic_has() -> None:
    policy = RetryPolicy(delays=["5s", 90], jitter=0.2)
    assert policy.attempts_max == 2
    assert policy.topic_configs("billing") == {
        "delay.mode": "retry",
        "retry.delays": "5s,90s",
        "retry.attempts": "0",
        "retry.jitter": "0.2",
        "retry.dead.letter.topic": "dlq.billing",
    }
    assert all(5 <= policy.delay_s(1) <= 6 for _ in range(20))
    capped = RetryPolicy(delays=["5s"], jitter=1.0, max_delay="6s")
    assert capped.topic_configs("billing")["delay.max.ms"] == "6000"
    assert all(5 <= capped.delay_s(1) <= 6 for _ in range(20))
    work = Work(options_of(keep_order=True, retry=capped))
    assert work.decide(make_record(4), Retry(after=9), 1) == 6


@pytest.mark.parametrize(
    "wrong",
    [
        {"delays": []},
        {"attempts": -1},
        {"jitter": 2.0},
        {"delays": ["soon"]},
        {"delays": ["5s", "2m"], "max_delay": "1m"},
        {"max_delay": "soon"},
    ],
)
def test_a_policy_that_makes_no_sense_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        RetryPolicy(**wrong)


@pytest.mark.parametrize(
    "wrong",
    [
        {"concurrency": 0},
        {"count_crashes": True, "concurrency": 2},
        {"count_crashes": True, "keep_order": True},
        {"circuit_failure_ratio": 0},
        {"group_id": "other"},
        {"enable_auto_commit": True},
    ],
)
def test_settings_that_make_no_sense_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(SettingError):
        Worker("orders", group="billing", handler=print, **wrong)


def test_a_worker_reads_committed_records_from_the_beginning_unless_told_otherwise() -> None:
    config = options_of().consumer_config
    assert config["isolation.level"] == "read_committed"
    assert config["auto.offset.reset"] == "earliest"
    assert options_of(auto_offset_reset="latest").consumer_config["auto.offset.reset"] == "latest"


# -- in lanes ------------------------------------------------------------------------------------


def finish_all(work: Work, turns: list[Turn], fails: Callable[[Turn], bool], now_s: float) -> None:
    for turn in turns:
        work.finish(turn, OSError("x") if fails(turn) else None, now_s)


@given(st.integers(0, 2**32), st.integers(1, 6), st.booleans())
def test_commits_never_pass_what_is_not_done_nor_a_failure_without_its_letter(
    seed: int, concurrency: int, keep_order: bool
) -> None:
    """Random ends of records, with a consumer that crashes never: a model of all promises."""
    choices = random.Random(seed)
    policy = RetryPolicy(delays=[1], attempts=1)
    work = Work(options_of(concurrency=max(2, concurrency), keep_order=keep_order, retry=policy))
    keys = [None, b"a", b"b", b"c"]
    records = [make_record(offset, choices.choice(keys)) for offset in range(0, 60, 2)]
    failing_offsets = {record.offset for record in records if choices.random() < 0.3}
    work.begin(records)
    done: set[int] = set()
    written: list[int] = []
    committed = 0
    order: dict[bytes | None, list[int]] = {}
    running: list[Turn] = []
    now_s = 0.0
    while committed < 59:
        now_s += 0.5
        while len(running) < concurrency and (turn := work.take(now_s)) is not None:
            running.append(turn)
        if running:
            turn = running.pop(choices.randrange(len(running)))
            offset = turn.task.record.offset
            fails = offset in failing_offsets
            work.finish(turn, OSError("x") if fails else None, now_s)
            if not fails or not keep_order or turn.attempt == 2:
                done.add(offset)
                order.setdefault(turn.task.record.key, []).append(offset)
        if choices.random() < 0.5 and (settlement := work.settlement()) is not None:
            assert settlement.offsets is not None
            committed = settlement.offsets[PARTITION].offset
            written += [letter.offset for letter in settlement.letters]
            work.settled(settlement)
            assert all(record.offset in done for record in records if record.offset < committed)
            assert set(written) == {each for each in failing_offsets if each < committed}
    assert len(written) == len(set(written)) == len(failing_offsets)
    assert all(offsets == sorted(offsets) for key, offsets in order.items() if key is not None)
    assert work.metrics().in_flight == 0


def test_a_full_window_pauses_its_partition_alone() -> None:
    work = Work(options_of(concurrency=2, max_in_flight=10))
    work.assign([PARTITION, TopicPartition("orders", 1)])
    work.begin([make_record(offset, b"%d" % offset) for offset in range(5)])
    assert work.paused(0.0, is_held=False) == {PARTITION}
    assert work.metrics().full_partitions == 1
    assert len(work.paused(0.0, is_held=True)) == 2
    turns = [turn for _ in range(5) if (turn := work.take(0.0)) is not None]
    finish_all(work, turns, lambda turn: False, 0.0)
    assert work.can_go_on()
    assert work.paused(0.0, is_held=False) == set()


def test_partitions_that_are_lost_leave_nothing_behind() -> None:
    work = Work(options_of(concurrency=2))
    work.assign([PARTITION])
    work.begin([make_record(0, b"a"), make_record(1, b"a"), make_record(2, b"b")])
    first, second = work.take(0.0), work.take(0.0)
    assert first is not None
    assert second is not None
    work.finish(second, OSError("x"), 0.0)
    work.forget([PARTITION])
    # It was being handled all the time.
    work.finish(first, OSError("x"), 0.0)
    assert work.unsettled_count == 0
    assert work.settlement() is None
    assert work.take(0.0) is None
    assert work.unfinished_count() == 0


def test_before_partitions_go_only_what_was_overtaken_is_still_handled() -> None:
    work = Work(options_of(concurrency=2))
    work.assign([PARTITION])
    keys = (b"a", b"a", b"b", b"c", b"a", b"d")
    work.begin([make_record(offset, key) for offset, key in enumerate(keys)])
    first, overtaking = work.take(0.0), work.take(0.0)
    assert first is not None
    assert overtaking is not None
    assert overtaking.task.record.offset == 2
    work.finish(overtaking, None, 0.0)
    work.drop_waiting([PARTITION])
    # Record 1 lies in front of one that is done: without it that one would be handled again.
    assert work.unfinished_count([PARTITION]) == 2
    assert work.take(0.0) is None
    work.finish(first, None, 0.0)
    second = work.take(0.0)
    assert second is not None
    assert second.task.record.offset == 1
    work.finish(second, None, 0.0)
    assert work.unfinished_count([PARTITION]) == 0
    assert work.take(0.0) is None
    settlement = work.settlement()
    assert settlement is not None
    assert settlement.offsets is not None
    assert settlement.offsets[PARTITION].offset == 3


def test_what_waits_for_another_attempt_is_not_waited_for_when_partitions_go() -> None:
    work = Work(options_of(concurrency=2, in_process_attempts=2))
    work.assign([PARTITION])
    work.begin([make_record(0, b"a"), make_record(1, b"b")])
    first, second = work.take(0.0), work.take(0.0)
    assert first is not None
    assert second is not None
    work.finish(first, OSError("x"), 0.0)
    work.finish(second, None, 0.0)
    work.drop_waiting([PARTITION])
    assert work.unfinished_count([PARTITION]) == 0
    assert work.take(100.0) is None


# -- directly ------------------------------------------------------------------------------------


def test_directly_handled_records_are_committed_by_the_positions_unless_some_failed() -> None:
    work = Work(options_of())
    assert work.settlement() is None
    work.handled([make_record(0), make_record(1)], 0, 0.0)
    settlement = work.settlement()
    assert settlement is not None
    assert (settlement.offsets, settlement.letters) == (None, [])
    work.settled(settlement)
    assert work.settlement() is None

    letter = work.decide(make_record(2), OSError("x"), 1)
    assert isinstance(letter, Letter)
    work.send_on(letter)
    work.handled([make_record(2), make_record(3), make_record(0, partition=1)], 1, 0.0)
    work.handled([make_record(4)], 0, 0.0)
    settlement = work.settlement()
    assert settlement is not None
    assert settlement.offsets == {
        PARTITION: OffsetAndMetadata(5, "", 0),
        TopicPartition("orders", 1): OffsetAndMetadata(1, "", 0),
    }
    assert settlement.letters == [letter]


def test_what_is_found_to_be_committed_is_not_sent_again() -> None:
    work = Work(options_of())
    for offset in (1, 3):
        letter = work.decide(make_record(offset), OSError("x"), 1)
        assert isinstance(letter, Letter)
        work.send_on(letter)
    work.handled([make_record(offset) for offset in range(5)], 2, 0.0)
    work.found_committed({PARTITION: OffsetAndMetadata(3)})
    settlement = work.settlement()
    assert settlement is not None
    assert [each.offset for each in settlement.letters] == [3]
    work.found_committed({PARTITION: OffsetAndMetadata(5)})
    assert work.unsettled_count == 0


def test_a_suspect_goes_alone_and_a_refused_one_with_less_until_nothing_is_left() -> None:
    too_large = KafkaError(ErrorCode.MESSAGE_TOO_LARGE, "too large")
    work = Work(options_of())
    for offset in (1, 3):
        letter = work.decide(make_record(offset), OSError("x"), 1)
        assert isinstance(letter, Letter)
        work.send_on(letter)
    work.handled([make_record(offset) for offset in range(5)], 2, 0.0)
    alone = work.settlement(is_alone=True)
    assert alone is not None
    assert alone.offsets == {PARTITION: OffsetAndMetadata(2)}
    assert [each.offset for each in alone.letters] == [1]
    for without, value in (("its headers", b"1"), ("key and value", None)):
        assert work.refused(alone.letters[0], too_large) == without
        alone = work.settlement(is_alone=True)
        assert alone is not None
        assert (alone.letters[0].produced.value, alone.letters[0].is_dead) == (value, True)
    assert work.refused(alone.letters[0], too_large) is None
    work.settled(alone)
    rest = work.settlement()
    assert rest is not None
    assert rest.offsets == {PARTITION: OffsetAndMetadata(5, "", 0)}


# -- notes of crashes ----------------------------------------------------------------------------


def test_a_note_counts_how_often_the_process_died() -> None:
    committed: OffsetAndMetadata | None = None
    for _ in range(3):
        notes = CrashNotes(3)
        notes.learn({PARTITION: committed})
        committed = notes.begin(make_record(7))
        assert committed.offset == 7
    notes = CrashNotes(3)
    notes.learn({PARTITION: committed})
    with pytest.raises(DiedError, match="3 times"):
        notes.begin(make_record(7))
    assert '"count": 1' in notes.begin(make_record(8)).metadata


@pytest.mark.parametrize("metadata", ["", "mine", "[]", '{"attempting": "x"}', "null"])
def test_what_others_wrote_there_is_no_note(metadata: str) -> None:
    notes = CrashNotes(1)
    notes.learn({PARTITION: OffsetAndMetadata(7, metadata)})
    assert notes.begin(make_record(7)).offset == 7


def test_a_record_that_kills_every_process_uses_up_the_attempts_of_the_policy() -> None:
    work, attempts_max = Work(options_of()), RetryPolicy().attempts_max
    record, died_count = make_record(7), 0
    while True:
        committed: OffsetAndMetadata | None = None
        try:
            while True:
                notes = CrashNotes(3)
                notes.learn({PARTITION: committed})
                committed = notes.begin(record)
                died_count += 1
        except DiedError as error:
            letter = work.decide(record, error, 1)
        assert isinstance(letter, Letter)
        # What the broker does with it.
        failure = count_failure(tuple(letter.produced.headers or ()), 0)  # type: ignore[arg-type]
        if failure.attempts > attempts_max:
            break
        record = record._replace(headers=failure.headers)
    # It is handled once, and again as often as the policy says.
    assert died_count == attempts_max + 1 == 6
