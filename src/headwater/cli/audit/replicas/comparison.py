"""Compares what the replicas of a partition say they hold. Sans-io."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import NamedTuple

from headwater.wire.cluster_messages.describe_log_checksums import (
    ChecksumRun,
    DescribeLogChecksumsResponse,
)


class Difference(NamedTuple):
    """The first offsets at which replicas differ, and which of them agree there."""

    from_offset: int
    to_offset: int
    #: The largest party first.
    parties: tuple[tuple[int, ...], ...]


class Bounds(NamedTuple):
    """What all replicas have, and have in front of their high watermarks."""

    from_offset: int
    to_offset: int


def common_bounds(answers: Mapping[int, DescribeLogChecksumsResponse]) -> Bounds:
    start = max(answer.log_start_offset for answer in answers.values())
    end = min(answer.high_watermark for answer in answers.values())
    return Bounds(start, max(start, end))


def first_difference(runs: Mapping[int, Sequence[ChecksumRun]]) -> Difference | None:
    """By broker what it holds of one stretch; None if all hold the same."""
    for some in zip_longest(*runs.values()):
        parties: dict[tuple[int, int, int, int] | None, list[int]] = {}
        for broker_id, run in zip(runs, some, strict=True):
            parties.setdefault(_values(run), []).append(broker_id)
        if len(parties) > 1:
            there = [run for run in some if run is not None]
            return Difference(
                min(run.from_offset for run in there),
                max(run.to_offset for run in there),
                tuple(
                    tuple(sorted(each))
                    for each in sorted(parties.values(), key=lambda each: (-len(each), each))
                ),
            )
    return None


def _values(run: ChecksumRun | None) -> tuple[int, int, int, int] | None:
    if run is None:
        return None
    return run.from_offset, run.to_offset, run.batch_count, run.checksum
