"""Divides a number among partitions in proportion to what they have, exactly and fairly.

Both a micro-batch's limit and the number of tasks are divided so. Nobody who has something goes
away with nothing, however little it is beside the others: a partition with one new record among
others with millions would otherwise never be read while the millions keep coming.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from headwater.base.checks import check

Key = TypeVar("Key")


def proportional_shares(sizes: Mapping[Key, int], total: int) -> dict[Key, int]:
    """A share of `total` for each key, at least 1 and at most its size.

    The shares sum to `total`, or where that cannot be to the nearest that can: as many as there are
    keys, or all that there is. All arithmetic is with whole numbers, because offsets are too large
    for floating ones.
    """
    check(all(size > 0 for size in sizes.values()), "a share of nothing")
    everything = sum(sizes.values())
    total = min(max(total, len(sizes)), everything)
    # One for everybody first; what is left is divided in proportion to what else there is, so no
    # share can be more than the size. Rounding down leaves less than one for each.
    rest_total = total - len(sizes)
    rest = everything - len(sizes)
    if rest_total == 0:
        return dict.fromkeys(sizes, 1)
    shares: dict[Key, int] = {}
    remainders: list[tuple[int, Key]] = []
    for key, size in sizes.items():
        whole, remainder = divmod((size - 1) * rest_total, rest)
        shares[key] = 1 + whole
        if remainder:
            remainders.append((remainder, key))
    left = total - sum(shares.values())
    remainders.sort(key=lambda entry: -entry[0])
    for _, key in remainders[:left]:
        shares[key] += 1
    return shares
