"""The names of a group's topics for what it could not handle: the one place that has them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from headwater.base.durations import show_duration
from headwater.wire.delayed.headers import ATTEMPTS_HEADER
from headwater.wire.records.record import Header

RETRY_PREFIX: Final = "retry."
DEAD_LETTER_PREFIX: Final = "dlq."


def retry_topic(group: str) -> str:
    """Where a group sends what it could not handle, and finds it again when it is due."""
    return RETRY_PREFIX + group


def retry_queue(group: str, delay_ms: int) -> str:
    """One queue of a group that has a topic for each delay: `retry.billing.5s`."""
    return f"{queue_prefix(group)}{show_duration(delay_ms)}"


def queue_prefix(group: str) -> str:
    """How the names of a group's queues begin."""
    return f"{retry_topic(group)}."


def queue_for(group: str, delays_ms: Sequence[int], headers: Sequence[Header]) -> str:
    """The queue for a record that has failed once more than its headers say."""
    attempts = 0
    for name, value in headers:
        # What has more digits than any number of 64 bits was counted by nobody.
        if name == ATTEMPTS_HEADER and value and value.isdigit() and len(value) <= 19:
            attempts = int(value)
    return retry_queue(group, delays_ms[min(attempts, len(delays_ms) - 1)])


def ready_topic(group: str) -> str:
    """Beside a cluster without retry topics: where a group finds what a retry service has kept."""
    return f"{retry_topic(group)}.ready"


def group_of(retry: str) -> str:
    """The group whose retry topic this is; a topic of another name is called after itself."""
    return retry.removeprefix(RETRY_PREFIX)


def dead_letter_topic(group: str) -> str:
    """Where the broker moves what the group has given up."""
    return DEAD_LETTER_PREFIX + group
