"""What became of the records of a topic: who was sent on how often, and where it is at last.

The way of a record is known by its origin: it is in its topic, after its n-th failure it is shown
in the retry topic with n attempts on it, and in the end it may be in the dead-letter topic. So for
each attempt there is what came *in*, and what went *out* of it: once on, or not at all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from headwater.base.ids import TopicPartition
from headwater.client.consumer.record import ConsumerRecord
from headwater.client.failures.failed_record import origin_of
from headwater.sim.handling.chance_handler import UNREADABLE, attempt_of
from headwater.sim.handling.ledger import HandlingLedger, Verdict
from headwater.sim.histories.history import PropertyViolated


class Body(NamedTuple):
    key: bytes | None
    value: bytes | None


@dataclass
class Outcomes:
    """Of one group, as somebody sees them who reads what is committed."""

    #: By origin, what was in the topic at first.
    sources: dict[str, Body] = field(default_factory=dict)
    #: By origin and attempt, how often it was shown again.
    shown: Counter[tuple[str, int]] = field(default_factory=Counter)
    #: The same of dead letters.
    dead: Counter[tuple[str, int]] = field(default_factory=Counter)
    bodies: list[tuple[str, Body]] = field(default_factory=list)
    #: Whether workers count by themselves: a letter leaves the topic with all attempts on it.
    keeps_order: bool = False

    @classmethod
    def of(
        cls,
        records: Iterable[ConsumerRecord],
        source: str,
        retry: str,
        dead: str,
        *,
        keeps_order: bool = False,
    ) -> Outcomes:
        found = cls(keeps_order=keeps_order)
        for record in records:
            origin, body = str(origin_of(record)), Body(record.key, record.value)
            if record.topic == source:
                found.sources[origin] = body
                continue
            if record.topic in (retry, dead):
                found.bodies.append((origin, body))
                counts = found.shown if record.topic == retry else found.dead
                counts[origin, attempt_of(record.headers)] += 1
        return found

    def came_in(self, origin: str, attempt: int) -> int:
        return self.shown[origin, attempt] if attempt else 1

    def went_out(self, origin: str, attempt: int) -> int:
        return self.shown[origin, attempt + 1] + self.given_up(origin, attempt)

    def given_up(self, origin: str, attempt: int) -> int:
        if not self.keeps_order:
            return self.dead[origin, attempt + 1]
        letters = [count for (name, _), count in self.dead.items() if name == origin]
        return 0 if attempt else sum(letters)


def check_bodies(outcomes: Outcomes) -> None:
    """Nothing is sent on that was not there, and what is sent on is as it was."""
    for origin, body in outcomes.bodies:
        if outcomes.sources.get(origin) != body:
            raise PropertyViolated(
                f"a record is sent on as it came: {origin} was {outcomes.sources.get(origin)} and "
                f"became {body}"
            )
    for run_origin in dict.fromkeys(origin for origin, _ in (*outcomes.shown, *outcomes.dead)):
        if run_origin not in outcomes.sources:
            raise PropertyViolated(f"nothing foreign is sent on, but {run_origin} is")


def check_one_outcome(
    outcomes: Outcomes, ledger: HandlingLedger, attempts_max: int, *, has_deserializer: bool
) -> None:
    """Each record was handled, or sent on once, at each attempt; nothing is lost or doubled."""
    for origin, body in outcomes.sources.items():
        is_unreadable = has_deserializer and (body.value or b"").startswith(UNREADABLE)
        for attempt in range(attempts_max + 2):
            came_in = outcomes.came_in(origin, attempt)
            went_out = outcomes.went_out(origin, attempt)
            # Counters keep what they were asked for otherwise.
            interrupted = ledger.interruptions.get((origin, attempt), 0)
            if went_out > came_in + interrupted or (went_out and not came_in):
                raise PropertyViolated(
                    f"a record has one outcome: {origin} was there {came_in} times at attempt "
                    f"{attempt} and was sent on {went_out} times"
                )
            if not came_in:
                continue
            verdicts = {run.verdict for run in ledger.of_attempt(origin, attempt)}
            if not went_out and Verdict.DONE not in verdicts:
                raise PropertyViolated(
                    f"no record is lost: {origin} was neither handled at attempt {attempt} nor "
                    "sent on"
                )
            if is_unreadable and (verdicts or not outcomes.given_up(origin, 0)):
                raise PropertyViolated(
                    f"what cannot be deserialized is a dead letter at once: {origin} is not"
                )
            has_failed = verdicts & {Verdict.FAILED, Verdict.DEAD}
            if went_out and not has_failed and not is_unreadable:
                raise PropertyViolated(
                    f"only what failed is sent on: {origin} did not fail at attempt {attempt}"
                )


def check_attempts(
    outcomes: Outcomes, ledger: HandlingLedger, attempts_max: int, *, has_deserializer: bool
) -> None:
    """A record is shown as often as the policy says, and given up then or when that was asked."""
    for (origin, attempt), count in outcomes.shown.items():
        if count and not 1 <= attempt <= attempts_max:
            raise PropertyViolated(
                f"attempts are as the policy says: {origin} was shown with {attempt} of "
                f"{attempts_max}"
            )
    for (origin, attempt), count in outcomes.dead.items():
        value = outcomes.sources[origin].value or b""
        if not count or attempt == attempts_max + 1:
            continue
        if has_deserializer and value.startswith(UNREADABLE):
            continue
        came_in = 0 if outcomes.keeps_order else attempt - 1
        verdicts = [run.verdict for run in ledger.of_attempt(origin, came_in)]
        if Verdict.DEAD not in verdicts and not _is_used_up(ledger, origin, attempts_max):
            raise PropertyViolated(
                f"nothing is given up early: {origin} is dead with {attempt} attempts of "
                f"{attempts_max}, and nobody said so"
            )


def _is_used_up(ledger: HandlingLedger, origin: str, attempts_max: int) -> bool:
    """Where order is kept: whether one worker has tried it so often by itself."""
    tried = Counter(
        run.tenure.number for run in ledger.runs if run.origin == origin and run.attempt == 0
    )
    return any(count > attempts_max for count in tried.values())


def not_committed(
    records: Iterable[ConsumerRecord], committed: dict[TopicPartition, int]
) -> list[str]:
    """Which of these records a group has not committed."""
    return [
        f"{record.topic_partition}@{record.offset}"
        for record in records
        if record.offset >= committed.get(record.topic_partition, record.offset + 1)
    ]
