"""The names of a group's topics for what it could not handle: the one place that has them."""

from __future__ import annotations

from typing import Final

RETRY_PREFIX: Final = "retry."
DEAD_LETTER_PREFIX: Final = "dlq."


def retry_topic(group: str) -> str:
    """Where a group sends what it could not handle, and finds it again when it is due."""
    return RETRY_PREFIX + group


def group_of(retry: str) -> str:
    """The group whose retry topic this is; a topic of another name is called after itself."""
    return retry.removeprefix(RETRY_PREFIX)


def dead_letter_topic(group: str) -> str:
    """Where the broker moves what the group has given up."""
    return DEAD_LETTER_PREFIX + group
