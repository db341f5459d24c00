"""The checkers of the workers' campaign: what is sound passes, and each violation is told."""

from __future__ import annotations

import pytest

from headwater.base.ids import TopicPartition
from headwater.sim.handling.ledger import STRAY, HandlerRun, HandlingLedger, Tenure, Verdict
from headwater.sim.handling.outcomes import Body, Outcomes, check_attempts, check_bodies
from headwater.sim.handling.outcomes import check_one_outcome as check_outcome_of_each
from headwater.sim.handling.promises import (
    check_committed_stays,
    check_key_order,
    check_never_early,
    check_no_strays,
    check_run_again,
)
from headwater.sim.histories.history import PropertyViolated

PARTITION = TopicPartition("orders", 0)
ORIGIN = "orders-0@7"
DELAYS_S = (1.0, 5.0)

DONE, FAILED, DEAD, NONE = Verdict.DONE, Verdict.FAILED, Verdict.DEAD, Verdict.NONE


def ledger_of(*runs: HandlerRun) -> HandlingLedger:
    return HandlingLedger("billing", runs=list(runs))


def run_of(
    verdict: Verdict,
    began_s: float = 0.0,
    *,
    attempt: int = 0,
    offset: int = 7,
    tenure: int = 1,
    after_s: float | None = None,
) -> HandlerRun:
    held = Tenure(tenure, "worker", PARTITION, 10.0 * tenure)
    ended_s = None if verdict is NONE else began_s
    return HandlerRun(held, offset, b"k", ORIGIN, attempt, began_s, ended_s, verdict, after_s)


def outcomes_of(shown: dict[int, int], dead: dict[int, int]) -> Outcomes:
    body = Body(b"k", b"v")
    found = Outcomes(sources={ORIGIN: body}, bodies=[(ORIGIN, body)])
    found.shown.update({(ORIGIN, attempt): count for attempt, count in shown.items()})
    found.dead.update({(ORIGIN, attempt): count for attempt, count in dead.items()})
    return found


def check_one_outcome(outcomes: Outcomes, ledger: HandlingLedger) -> None:
    check_outcome_of_each(outcomes, ledger, 2, has_deserializer=True)


def test_a_record_that_is_handled_at_its_second_attempt_is_sound() -> None:
    outcomes = outcomes_of({1: 1}, {})
    ledger = ledger_of(run_of(FAILED), run_of(DONE, 2.0, attempt=1, offset=8))
    check_bodies(outcomes)
    check_one_outcome(outcomes, ledger)
    check_attempts(outcomes, ledger, 2, has_deserializer=True)
    check_no_strays(ledger)
    check_run_again(ledger, 1)
    check_committed_stays(ledger)
    check_never_early(ledger, DELAYS_S, 0.0)
    check_key_order(ledger, None)


def test_one_that_is_used_up_is_sound() -> None:
    outcomes = outcomes_of({1: 1, 2: 1}, {3: 1})
    ledger = ledger_of(*(run_of(FAILED, 10.0 * count, attempt=count) for count in range(3)))
    check_one_outcome(outcomes, ledger)
    check_attempts(outcomes, ledger, 2, has_deserializer=True)


@pytest.mark.parametrize(
    ("shown", "dead", "verdict", "promise"),
    [
        ({}, {}, FAILED, "no record is lost"),
        ({1: 2}, {}, FAILED, "one outcome"),
        ({1: 1}, {1: 1}, FAILED, "one outcome"),
        ({}, {1: 1}, DONE, "only what failed"),
        ({2: 1}, {}, FAILED, "one outcome|no record is lost"),
    ],
)
def test_no_outcome_and_two_are_told(
    shown: dict[int, int], dead: dict[int, int], verdict: Verdict, promise: str
) -> None:
    with pytest.raises(PropertyViolated, match=promise):
        check_one_outcome(outcomes_of(shown, dead), ledger_of(run_of(verdict)))


def test_who_ended_between_produce_and_commit_may_double() -> None:
    ledger = ledger_of(run_of(DEAD), run_of(DEAD, tenure=2))
    ledger.interruptions[ORIGIN, 0] = 1
    check_one_outcome(outcomes_of({}, {1: 2}), ledger)
    with pytest.raises(PropertyViolated, match="one outcome"):
        check_one_outcome(outcomes_of({}, {1: 3}), ledger)


def test_what_is_changed_on_its_way_is_told() -> None:
    outcomes = outcomes_of({1: 1}, {})
    outcomes.bodies.append((ORIGIN, Body(b"k", b"another")))
    with pytest.raises(PropertyViolated, match="as it came"):
        check_bodies(outcomes)


def test_attempts_beside_the_policy_are_told() -> None:
    with pytest.raises(PropertyViolated, match="as the policy says"):
        check_attempts(outcomes_of({3: 1}, {}), ledger_of(), 2, has_deserializer=True)
    with pytest.raises(PropertyViolated, match="given up early"):
        check_attempts(outcomes_of({}, {1: 1}), ledger_of(run_of(FAILED)), 2, has_deserializer=True)


def test_a_run_again_in_one_tenure_is_told() -> None:
    check_run_again(ledger_of(run_of(DONE), run_of(DONE, tenure=2)), 1)
    check_run_again(ledger_of(run_of(FAILED), run_of(DONE)), 2)
    with pytest.raises(PropertyViolated, match="only after a crash or a rebalance"):
        check_run_again(ledger_of(run_of(FAILED), run_of(DONE)), 1)
    with pytest.raises(PropertyViolated, match="only after a crash or a rebalance"):
        check_run_again(ledger_of(run_of(DONE), run_of(DONE)), 2)


def test_what_was_committed_before_is_not_handled_again() -> None:
    ledger = ledger_of(run_of(DONE, 30.0, tenure=2))
    ledger.saw_committed({PARTITION: 8}, 25.0)
    check_committed_stays(ledger)
    ledger.saw_committed({PARTITION: 8}, 15.0)
    with pytest.raises(PropertyViolated, match="not handled again"):
        check_committed_stays(ledger)


def test_who_does_not_have_the_partition_is_told() -> None:
    with pytest.raises(PropertyViolated, match="handles what it has"):
        check_no_strays(ledger_of(run_of(DONE, tenure=STRAY)))


def test_what_comes_early_is_told() -> None:
    early = ledger_of(run_of(FAILED), run_of(DONE, 0.9, attempt=1, offset=9))
    check_never_early(early, DELAYS_S, 0.2)
    with pytest.raises(PropertyViolated, match="tried again early"):
        check_never_early(early, DELAYS_S, 0.0)
    asked = ledger_of(run_of(FAILED, after_s=9.0), run_of(DONE, 8.0, attempt=1, offset=9))
    with pytest.raises(PropertyViolated, match="tried again early"):
        check_never_early(asked, DELAYS_S, 0.0)
    in_process = ledger_of(run_of(FAILED), run_of(DONE, 0.5))
    with pytest.raises(PropertyViolated, match="tried again early"):
        check_never_early(in_process, DELAYS_S, 3.0)


def test_what_overtakes_is_told() -> None:
    with pytest.raises(PropertyViolated, match="in order"):
        check_key_order(ledger_of(run_of(DONE, offset=8), run_of(DONE, 1.0)), None)
    with pytest.raises(PropertyViolated, match="in order"):
        check_key_order(ledger_of(run_of(NONE), run_of(DONE, 1.0, offset=8)), None)
    overtaken = ledger_of(run_of(FAILED), run_of(DONE, 1.0, offset=8))
    check_key_order(overtaken, None)
    with pytest.raises(PropertyViolated, match="wait for one that fails"):
        check_key_order(overtaken, 2)
