"""Delayed delivery in figures: what waits, what came of it, and how late deliveries are."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import accumulate
from operator import add
from typing import Final

from headwater.broker.context import BrokerContext
from headwater.broker.metrics.exposition import counter, gauge, histogram, labels
from headwater.delay.lateness import BOUNDS_MS
from headwater.delay.waiting import DelayCounts

_GAUGES: Final = (
    ("waiting", "Messages that wait for their time in partitions led here."),
    ("waiting_bytes", "Their bytes in the log."),
    ("due_within_minute", "How many of them are due within a minute."),
    ("index_bytes", "The size of the indexes of what waits."),
)
_COUNTERS: Final = (
    ("delivered", "Messages that were delivered here."),
    ("cancelled", "Messages that were cancelled."),
    ("expired", "Messages that were not delivered because headwater-expire-at was over."),
    ("deleted", "Messages that waited and were taken by DeleteRecords."),
    ("unknown", "Changes of messages that did not wait, or not any more."),
    ("rolled_bytes", "Bytes of messages that were written again before their segment went."),
)


def delay_metrics(broker: BrokerContext, shown_max: int) -> Iterator[str]:
    """The families about delays, by topic; with more than `shown_max` topics, only sums."""
    now_ms = broker.clock.wall_ms()
    by_topic: dict[str, list[DelayCounts]] = defaultdict(list)
    lateness = [0] * (len(BOUNDS_MS) + 1)
    lateness_ms = 0
    for partition, delays in broker.delays:
        counts = delays.answers.known_counts(now_ms)
        if counts is not None:
            by_topic[partition.topic_partition.topic].append(counts)
        lateness = list(map(add, lateness, delays.hand_over.lateness.counts))
        lateness_ms += delays.hand_over.lateness.sum_ms
    if len(by_topic) > shown_max:
        by_topic = defaultdict(list, {"": [each for some in by_topic.values() for each in some]})
    named = {labels({"topic": topic}) if topic else "": some for topic, some in by_topic.items()}
    for kind, rows in (("gauge", _GAUGES), ("counter", _COUNTERS)):
        for attribute, help_text in rows:
            samples = [
                (names, sum(getattr(each, attribute) for each in some))
                for names, some in sorted(named.items())
            ]
            if kind == "gauge":
                yield from gauge(f"headwater_delay_{attribute}", help_text, samples)
            else:
                yield from counter(f"headwater_delay_{attribute}_total", help_text, samples)
    overdue = [
        (names, max((_overdue_s(each, now_ms) for each in some), default=0.0))
        for names, some in sorted(named.items())
    ]
    yield from gauge(
        "headwater_delay_overdue_seconds",
        "For how long what should be delivered next has been due.",
        overdue,
    )
    below = list(accumulate(lateness))
    yield from histogram(
        "headwater_delay_lateness_seconds",
        "From when a message was due to the append of its copy.",
        [
            (
                {},
                [(bound / 1000, count) for bound, count in zip(BOUNDS_MS, below, strict=False)],
                below[-1],
                lateness_ms / 1000,
            )
        ],
    )


def _overdue_s(counts: DelayCounts, now_ms: int) -> float:
    return max(now_ms - counts.next_due_ms, 0) / 1000 if counts.next_due_ms >= 0 else 0.0
