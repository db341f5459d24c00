"""What can be wrong with what a producer wrote: the judge of the fault tests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise


def losses(acknowledged: Sequence[bytes], found: Sequence[bytes]) -> list[str]:
    """Records that were acknowledged and are not there."""
    present = set(found)
    return [f"{value!r} is lost" for value in acknowledged if value not in present]


def doubles(found: Sequence[bytes]) -> list[str]:
    counted = Counter(found)
    return [f"{value!r} is there {count} times" for value, count in counted.items() if count > 1]


def disorder(sent: Sequence[bytes], found: Sequence[bytes]) -> list[str]:
    """Records that come after one that was sent later."""
    place = {value: index for index, value in enumerate(sent)}
    return [
        f"{after!r} comes after {before!r}"
        for before, after in pairwise(found)
        if place[after] < place[before]
    ]


def torn(transactions: dict[int, int], found: Sequence[bytes]) -> list[str]:
    """Transactions of which a part is there; a value begins with its transaction's number.

    `transactions` has the number of records of each.
    """
    counted = Counter(int(value.split(b":")[0]) for value in found)
    return [
        f"transaction {number} has {counted[number]} of {size} records"
        for number, size in transactions.items()
        if counted[number] not in (0, size)
    ]
