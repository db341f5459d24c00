"""What was promised of the runs of handlers: when again, when at the earliest, in which order."""

from __future__ import annotations

from collections.abc import Sequence

from headwater.base.ids import TopicPartition
from headwater.sim.handling.ledger import STRAY, HandlerRun, HandlingLedger, Verdict
from headwater.sim.histories.history import PropertyViolated

#: Times of the brokers are whole milliseconds.
_ROUNDING_S = 0.002


def check_no_strays(ledger: HandlingLedger) -> None:
    """A worker begins to handle only records of partitions that it has."""
    for run in ledger.runs:
        if run.tenure.number == STRAY:
            raise PropertyViolated(
                f"a worker handles what it has: {run.tenure.program} began {run.place}"
            )


def check_run_again(ledger: HandlingLedger, runs_max: int) -> None:
    """A handler runs again only after a crash or a rebalance, or as often as was asked for."""
    before: dict[tuple[int, TopicPartition, int], list[HandlerRun]] = {}
    for run in ledger.runs:
        runs = before.setdefault((run.tenure.number, run.tenure.partition, run.offset), [])
        if runs and (runs[-1].verdict is not Verdict.FAILED or len(runs) >= runs_max):
            raise PropertyViolated(
                "a handler runs again only after a crash or a rebalance: "
                f"{run.tenure.program} had {run.place} {len(runs)} times before, in one tenure"
            )
        runs.append(run)


def check_committed_stays(ledger: HandlingLedger) -> None:
    """What is committed is never handled again by one who got its partition later."""
    for run in ledger.runs:
        committed = ledger.committed_before(run.tenure.began_s, run.tenure.partition)
        if run.offset < committed:
            raise PropertyViolated(
                f"what is committed is not handled again: {run.tenure.program} began {run.place}, "
                f"and {committed} was committed before"
            )


def check_never_early(
    ledger: HandlingLedger, delays_s: Sequence[float], clock_error_s: float
) -> None:
    """A record that failed is not handled again before its time."""

    def due_s(run: HandlerRun, failure_count: int) -> float:
        after_s = run.after_s
        if after_s is None:
            after_s = delays_s[min(failure_count, len(delays_s)) - 1]
        return (run.ended_s or run.began_s) + after_s

    last: dict[tuple[int, TopicPartition, int], tuple[HandlerRun, int]] = {}
    for run in ledger.runs:
        place = (run.tenure.number, run.tenure.partition, run.offset)
        previous, count = last.get(place, (None, 0))
        last[place] = (run, count + 1)
        if previous is not None and previous.verdict is Verdict.DONE:
            continue  # It should not run again at all, which is another promise.
        if previous is not None:
            # Tried again by the same worker, with a clock that nobody sets.
            earliest_s = due_s(previous, count)
        elif run.attempt:
            failed = [
                each
                for each in ledger.of_attempt(run.origin, run.attempt - 1)
                if each.verdict is not Verdict.DONE and each.began_s < run.began_s
            ]
            if not failed:
                raise PropertyViolated(
                    f"what comes back has failed before: {run.origin} with {run.attempt} attempts"
                )
            earliest_s = min(due_s(each, run.attempt) for each in failed) - clock_error_s
        else:
            continue
        if run.began_s < earliest_s - _ROUNDING_S:
            raise PropertyViolated(
                f"nothing is tried again early: {run.origin} at {run.began_s:.3f}, and not before "
                f"{earliest_s:.3f}"
            )


def check_key_order(ledger: HandlingLedger, kept_attempts_max: int | None) -> None:
    """A worker handles the records of a key one after the other, in the order of the partition.

    Where order is kept, with so many attempts, it gets to the next one only when that before it is
    done or given up.
    """
    lanes: dict[tuple[int, TopicPartition, bytes], list[HandlerRun]] = {}
    for run in ledger.runs:
        if run.key is None:
            continue
        lane = lanes.setdefault((run.tenure.number, run.tenure.partition, run.key), [])
        if lane:
            before = lane[-1]
            is_over = before.ended_s is not None and before.ended_s <= run.began_s
            if not is_over or before.offset > run.offset:
                raise PropertyViolated(
                    f"records of a key are handled in order: {run.tenure.program} began "
                    f"{run.place} after {before.place}, which was {before.verdict.value}"
                )
            tried_count = sum(each.offset == before.offset for each in lane)
            is_left = before.verdict is Verdict.FAILED and before.offset != run.offset
            if kept_attempts_max is not None and is_left and tried_count <= kept_attempts_max:
                raise PropertyViolated(
                    f"records of a key wait for one that fails: {run.tenure.program} began "
                    f"{run.place} when {before.place} had failed {tried_count} times"
                )
        lane.append(run)
