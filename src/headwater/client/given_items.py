"""What callers give: one thing where several may be given counts as one, and what is wrong is told.

A string is a sequence of strings to Python, and a `TopicPartition` or a `NewTopic` is a tuple. Who
writes `delete_topics("orders")` means one topic, and must not delete `o`, `r`, `d`, `e` and `s`.
Every public call that takes several things reads them with a function from here. What has the wrong
type raises `TypeError` with a sentence that says what was given, and what is wanted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import index
from typing import TypeVar

from headwater.base.ids import TopicPartition

K = TypeVar("K")
T = TypeVar("T")


# -- several things ------------------------------------------------------------------------------


def given_names(given: Iterable[str]) -> list[str]:
    """Names of topics, groups, settings and the like."""
    return given_items(given, str)


def given_items(given: Iterable[T], kind: type[T]) -> list[T]:
    """Things of one kind."""
    wanted = "text" if kind is str else f"a {kind.__name__}"
    # Bytes and text would be taken apart.
    is_one = isinstance(given, (kind, str, bytes)) or not isinstance(given, Iterable)
    listed = [given] if is_one else list(given)
    for item in listed:
        if not isinstance(item, kind):
            raise TypeError(f"{item!r} cannot be used here: it must be {wanted}.")
    return listed  # type: ignore[return-value]  # All of them are of that kind.


def given_partitions(given: Iterable[TopicPartition]) -> list[TopicPartition]:
    """Partitions, as `TopicPartition` or as plain pairs."""
    if isinstance(given, tuple) and _is_pair(given):
        return [TopicPartition(*given)]
    is_one = isinstance(given, str) or not isinstance(given, Iterable)
    return [given_partition(item) for item in ([given] if is_one else given)]


def given_mapping(given: Mapping[K, T], example: str) -> Mapping[K, T]:
    """A mapping; the example is of one that could be given."""
    if not isinstance(given, Mapping):
        raise TypeError(f"{given!r} cannot be used here: give a mapping, as in {example}.")
    return given


# -- one thing -----------------------------------------------------------------------------------


def given_partition(given: object) -> TopicPartition:
    """A partition, as a `TopicPartition` or as a pair."""
    if not _is_pair(given):
        raise TypeError(
            f"{given!r} is not a partition: give TopicPartition(topic, number), as in "
            "TopicPartition('orders', 0)."
        )
    return TopicPartition(*given)  # type: ignore[misc]  # A pair of the right types.


def given_topic(given: object) -> str:
    """The name of a topic; whether it can be one is another question."""
    if not isinstance(given, str):
        raise TypeError(f"{given!r} is not the name of a topic: it must be text, as in 'orders'.")
    return given


def given_number(given: object, what: str, *, lowest: int | None = None) -> int:
    """A whole number, such as an offset; `what` says which."""
    try:
        number = index(given)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(f"{what} cannot be {given!r}: it must be a whole number.") from None
    if lowest is not None and number < lowest:
        raise ValueError(f"{what} cannot be {number}: it must be at least {lowest}.")
    return number


def given_seconds(given: float | None) -> float | None:
    """A time limit; None for none."""
    if given is not None and not isinstance(given, int | float):
        raise TypeError(f"timeout_s cannot be {given!r}: it must be a number of seconds.")
    return given


def _is_pair(item: object) -> bool:
    return (
        isinstance(item, tuple | list)
        and len(item) == 2
        and isinstance(item[0], str)
        and hasattr(item[1], "__index__")
    )
