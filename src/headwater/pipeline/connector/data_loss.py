"""Records that are gone before they were read, and what is done about it: fail, or warn and go on.

Records go when they are deleted or grow too old, and with their topic. Whether that matters only
the user knows, who says it with the option `failOnDataLoss`.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import TopicPartition

_logger = logging.getLogger("headwater.pipeline")

Positions = Mapping[TopicPartition, int]


class DataLossError(KafkaError):
    """Records that a query was about to read do not exist any more."""

    code = ErrorCode.OFFSET_OUT_OF_RANGE
    advice = (
        "If these records may be missed, set the option failOnDataLoss to false: the query then "
        "goes on with what is there. To begin anew, use another checkpoint."
    )


class DataLossReport:
    """Hears of losses."""

    def __init__(self, *, is_fatal: bool) -> None:
        self._is_fatal = is_fatal

    def tell(self, sentence: str) -> None:
        """Raise or warn, as the user wishes."""
        if self._is_fatal:
            raise DataLossError(sentence)
        _logger.warning("%s The query goes on because failOnDataLoss is false.", sentence)


def gone_partitions(known: Positions, existing: Positions) -> str | None:
    """A sentence about partitions that were read and do not exist any more."""
    gone = sorted(set(known) - set(existing))
    if not gone:
        return None
    return (
        f"{', '.join(map(str, gone))} {'is' if len(gone) == 1 else 'are'} gone: records there that "
        "were not read yet cannot be read any more."
    )


def late_new_partitions(earliest: Positions) -> str | None:
    """A sentence about new partitions whose first records are gone already."""
    late = {each: offset for each, offset in sorted(earliest.items()) if offset > 0}
    if not late:
        return None
    places = ", ".join(f"{each} begins at offset {offset}" for each, offset in late.items())
    return f"Records of new partitions are gone before they were read: {places}."


def moved_back(starts: Positions, ends: Positions) -> str | None:
    """A sentence about partitions that end before where they were read up to."""
    back = [
        f"{each} was read up to offset {starts[each]} and now ends at {end}"
        for each, end in sorted(ends.items())
        if each in starts and end < starts[each]
    ]
    if not back:
        return None
    return f"Topics were emptied or created anew, so records may be missed: {', '.join(back)}."


def aged_out(topic_partition: TopicPartition, wanted: int, earliest: int) -> str:
    """A sentence about records before the first one that there is."""
    return (
        f"Records of {topic_partition} are gone before they were read: offset {wanted} was to be "
        f"next, and the first one there is {earliest}."
    )


def beyond_end(topic_partition: TopicPartition, wanted: int, latest: int) -> str:
    """A sentence about an offset after the last record that there is."""
    return (
        f"{topic_partition} ends at offset {latest}, before offset {wanted} that was asked for: "
        "records are gone, or have never been there."
    )
