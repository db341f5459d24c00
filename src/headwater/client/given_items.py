"""What callers give where several things may be given: one alone counts as one.

A string is a sequence of strings to Python, and a `TopicPartition` or a `NewTopic` is a tuple. Who
writes `delete_topics("orders")` means one topic, and must not delete `o`, `r`, `d`, `e` and `s`.
Every public call that takes several things reads them with a function from here.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from headwater.base.ids import TopicPartition

T = TypeVar("T")


def given_names(given: Iterable[str]) -> list[str]:
    """Names of topics, groups, settings and the like."""
    return given_items(given, str)


def given_items(given: Iterable[T], kind: type[T]) -> list[T]:
    """Things of one kind; raises `TypeError` for any other."""
    listed = [given] if isinstance(given, kind) else list(given)
    for item in listed:
        if not isinstance(item, kind):
            wanted = "text" if kind is str else f"a {kind.__name__}"
            raise TypeError(f"{item!r} cannot be used here: it must be {wanted}.")
    return listed


def given_partitions(given: Iterable[TopicPartition]) -> list[TopicPartition]:
    """Partitions, as `TopicPartition` or as plain pairs."""
    if isinstance(given, tuple) and _is_pair(given):
        return [TopicPartition(*given)]
    listed: list[TopicPartition] = []
    for item in [given] if isinstance(given, str) else given:
        if not _is_pair(item):
            raise TypeError(
                f"{item!r} is not a partition: give TopicPartition(topic, number), as in "
                "TopicPartition('orders', 0)."
            )
        listed.append(TopicPartition(*item))
    return listed


def _is_pair(item: object) -> bool:
    return (
        isinstance(item, tuple | list)
        and len(item) == 2
        and isinstance(item[0], str)
        and hasattr(item[1], "__index__")
    )
