"""Which transactional ids somebody wants to see listed; what is not given lets all pass."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

import re2

from headwater.base.errors import ErrorCode, KafkaError
from headwater.coordinator.txn.transaction_metadata import (
    STATES_BY_LABEL,
    TransactionMetadata,
    TransactionState,
)

#: What the engine may use for a pattern.
_PATTERN_BYTES_MAX: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class TransactionFilter:
    #: None lets all pass; an empty set, which is left when all names are unknown, lets none.
    states: frozenset[TransactionState] | None = None
    producer_ids: frozenset[int] = frozenset()
    #: Only those that began longer ago; -1 if that does not matter.
    duration_ms: int = -1
    id_matches: Callable[[str], bool] | None = None

    def lets_pass(self, metadata: TransactionMetadata, now_ms: int) -> bool:
        if self.states is not None and metadata.state not in self.states:
            return False
        if self.producer_ids and metadata.producer.producer_id not in self.producer_ids:
            return False
        if self.duration_ms >= 0 and now_ms - metadata.start_ms <= self.duration_ms:
            return False
        return self.id_matches is None or self.id_matches(metadata.transactional_id)


def states_of(labels: Iterable[str]) -> tuple[frozenset[TransactionState] | None, list[str]]:
    """The states of these names, None if there are no names, and the names that are unknown."""
    wanted = list(labels)
    if not wanted:
        return None, []
    known = frozenset(STATES_BY_LABEL[label] for label in wanted if label in STATES_BY_LABEL)
    return known, [label for label in wanted if label not in STATES_BY_LABEL]


def matcher_of(pattern: str) -> Callable[[str], bool]:
    """Whether an id as a whole matches a pattern; raises INVALID_REGULAR_EXPRESSION.

    Clients send patterns, so they run on an engine that none of them can keep busy.
    """
    options = re2.Options()
    options.max_mem = _PATTERN_BYTES_MAX
    options.log_errors = False
    try:
        compiled = re2.compile(pattern, options=options)
    except re2.error:
        raise KafkaError(
            ErrorCode.INVALID_REGULAR_EXPRESSION, f"{pattern!r} is not a valid pattern."
        ) from None
    return lambda transactional_id: compiled.fullmatch(transactional_id) is not None
