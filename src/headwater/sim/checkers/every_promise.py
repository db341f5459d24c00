"""All checks of what is read from start to end in a healed world."""

from __future__ import annotations

import uuid
from collections.abc import Mapping

from headwater.sim.checkers.duplicate import check_stored_once
from headwater.sim.checkers.foreign_record import check_nothing_foreign
from headwater.sim.checkers.lost_write import check_nothing_lost
from headwater.sim.checkers.record_order import check_offsets, check_order
from headwater.sim.checkers.topic_life import check_topics
from headwater.sim.histories.history import Contents, History


def check_every_promise(
    history: History, contents: Contents, topics: Mapping[str, uuid.UUID]
) -> None:
    """`contents` is all that partitions hold, `topics` all that there are."""
    check_offsets(contents)
    check_nothing_lost(history, contents)
    check_nothing_foreign(history, contents)
    check_stored_once(history, contents)
    check_order(history, contents)
    check_topics(history, topics)
