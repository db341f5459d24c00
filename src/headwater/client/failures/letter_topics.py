"""The dead-letter topic of a group, for those who write letters to it themselves."""

from __future__ import annotations

from headwater.wire.delayed.retry_topics import DEAD_LETTER_PREFIX, dead_letter_topic


def letter_topic(group: str) -> str:
    """Where the letters of a group go if nothing else is said."""
    return dead_letter_topic(group)


def letter_group(topic: str) -> str:
    """The group whose letters are in a topic; a topic of another name is called after itself."""
    return topic.removeprefix(DEAD_LETTER_PREFIX)
