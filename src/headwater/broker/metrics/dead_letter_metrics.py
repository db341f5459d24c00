"""Dead letters of retry topics in figures: what waits, what was moved, what is held up."""

from __future__ import annotations

from collections.abc import Iterator

from headwater.broker.context import BrokerContext
from headwater.broker.metrics.exposition import counter, gauge, labels


def dead_letter_metrics(broker: BrokerContext, shown_max: int) -> Iterator[str]:
    """The families about dead letters, by topic; with more than `shown_max` topics, only sums."""
    waiting: dict[str, int] = {}
    moved: dict[str, int] = {}
    held_up: dict[str, int] = {}
    open_breakers: dict[str, int] = {}
    now_ms = broker.clock.wall_ms()
    for partition, delays in broker.delays:
        state = delays.known_state
        topic = partition.topic_partition.topic
        if state is None or not (partition.log.config.delay.retry.dead_letter_topic or state.dead):
            continue
        waiting[topic] = waiting.get(topic, 0) + len(state.dead)
        moved[topic] = moved.get(topic, 0) + delays.moving.moved_count
        # How many partitions cannot move theirs.
        held_up[topic] = held_up.get(topic, 0) + bool(delays.moving.trouble)
        open_breakers[topic] = open_breakers.get(topic, 0) + delays.breaker.is_open(now_ms)
    yield from gauge(
        "headwater_dead_letters_waiting",
        "Dead letters of retry topics led here that are not in their dead-letter topic yet.",
        _samples(waiting, shown_max),
    )
    yield from counter(
        "headwater_dead_letters_moved_total",
        "Dead letters that were moved to their topic by this broker.",
        _samples(moved, shown_max),
    )
    yield from gauge(
        "headwater_dead_letters_held_up",
        "Partitions led here whose dead letters cannot be moved; the broker's log says why.",
        _samples(held_up, shown_max),
    )
    yield from gauge(
        "headwater_retry_breakers_open",
        "Partitions led here of which retry.breaker.letters records were given up within "
        "retry.breaker.window.ms.",
        _samples(open_breakers, shown_max),
    )


def _samples(by_topic: dict[str, int], shown_max: int) -> list[tuple[str, int]]:
    if len(by_topic) > shown_max:
        return [("", sum(by_topic.values()))]
    return [(labels({"topic": topic}), value) for topic, value in sorted(by_topic.items())]
