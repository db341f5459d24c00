"""What `headwater doctor` reads from brokers' metrics: load, controllers, clocks.

The thresholds are the ones that Kafka's operators go by: a broker that idles less than 30 % of its
time is near its limit, under-replicated partitions are one failure nearer to a loss, and a cluster
has exactly one active controller.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from headwater.cli.doctor.findings import Finding, good, note, problem
from headwater.cli.metrics.page import MetricsPage
from headwater.cli.metrics.table import IDLE_SHARE_MIN

CLOCK_SKEW_MAX_S: Final = 1.0
OVERDUE_MAX_S: Final = 5.0
_IDLE: Final = {
    "headwater_network_processor_avg_idle_percent": "event loops",
    "headwater_request_handler_avg_idle_percent": "disk threads",
}


class Reading(NamedTuple):
    """A broker's page, and this machine's clock before and after it was asked for."""

    page: MetricsPage
    asked_s: float
    answered_s: float

    @property
    def broker_id(self) -> str:
        for sample in self.page.samples("headwater_build_info"):
            return sample.labels.get("node_id", "?")
        return "?"


def check_metrics(readings: Sequence[Reading], broker_count: int) -> Iterator[Finding]:
    """All that pages tell; some brokers may have none."""
    for reading in readings:
        yield from _check_load(reading.broker_id, reading.page)
        yield from _check_clock(reading.broker_id, reading)
        yield from _check_deliveries(reading.broker_id, reading.page)
        yield from _check_dead_letters(reading.broker_id, reading.page)
    if readings and len(readings) == broker_count:
        yield from _check_controllers([reading.page for reading in readings])


def _check_load(broker_id: str, page: MetricsPage) -> Iterator[Finding]:
    for metric, who in _IDLE.items():
        share = page.value(metric)
        if share is None:
            continue
        text = f"The {who} of broker {broker_id} are idle {share:.0%} of the time"
        if share < IDLE_SHARE_MIN:
            yield problem("load", f"{text}; below {IDLE_SHARE_MIN:.0%} a broker is near its limit.")
        else:
            yield good("load", f"{text}.")


def _check_clock(broker_id: str, reading: Reading) -> Iterator[Finding]:
    told_s = reading.page.value("headwater_clock_seconds")
    if told_s is None:
        return
    # It was read at some moment in between; only what lies outside is a difference.
    ahead_s = max(told_s - reading.answered_s, 0.0)
    behind_s = max(reading.asked_s - told_s, 0.0)
    skew_s = max(ahead_s, behind_s)
    if skew_s > CLOCK_SKEW_MAX_S:
        where = "ahead of" if ahead_s else "behind"
        yield problem(
            "clock",
            f"The clock of broker {broker_id} is {skew_s:,.1f} s {where} this machine's: records "
            "will be kept for too long or not long enough, and looked up at the wrong time.",
        )
    else:
        yield good("clock", f"The clock of broker {broker_id} agrees with this machine's.")


def _check_deliveries(broker_id: str, page: MetricsPage) -> Iterator[Finding]:
    """Nothing is said of brokers where nothing waits."""
    overdue = page.samples("headwater_delay_overdue_seconds")
    late = [each for each in overdue if each.value > OVERDUE_MAX_S]
    for sample in late:
        yield problem(
            "delay",
            f"Broker {broker_id} is {sample.value:,.1f} s late with delayed messages of "
            f"{sample.labels.get('topic', 'its topics')}: more is due than it can append, or its "
            "disk or its replicas hold it up.",
        )
    if overdue and not late:
        yield good("delay", f"Broker {broker_id} delivers delayed messages in time.")


def _check_dead_letters(broker_id: str, page: MetricsPage) -> Iterator[Finding]:
    """Nothing is said of brokers that have none."""
    held_up = page.samples("headwater_dead_letters_held_up")
    for sample in held_up:
        if sample.value > 0:
            yield problem(
                "dead letters",
                f"Broker {broker_id} cannot move dead letters of "
                f"{sample.labels.get('topic', 'its topics')}: its log says why. They wait there, "
                "and nothing is lost.",
            )
    for sample in page.samples("headwater_retry_breakers_open"):
        if sample.value > 0:
            yield problem(
                "dead letters",
                f"So many records of {sample.labels.get('topic', 'its topics')} are given up that "
                f"its breaker is open on broker {broker_id}: look at the latest dead letters, and "
                "at what their consumers say.",
            )
    if held_up and not any(sample.value > 0 for sample in held_up):
        yield good("dead letters", f"Broker {broker_id} moves dead letters to their topics.")


def _check_controllers(pages: list[MetricsPage]) -> Iterator[Finding]:
    count = sum(page.value("headwater_active_controller_count") or 0 for page in pages)
    if count == 1:
        yield good("controller", "Exactly one broker is the active controller.")
    else:
        yield problem(
            "controller",
            f"{count:.0f} brokers are active controllers, but there must be exactly one.",
        )


def no_metrics(reason: str) -> Finding:
    """Load and clock of a broker cannot be judged."""
    return note("metrics", f"Without metrics, load and clocks are unknown. {reason}")
