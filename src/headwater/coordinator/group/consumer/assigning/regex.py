"""Regular expressions by which members subscribe: they come from clients and run in the broker.

So the engine must not be one that a pattern can keep busy: RE2 takes time in proportion to the text
and memory up to a limit, whatever the pattern, and its syntax is the one that Kafka documents. A
pattern has to match the whole name of a topic, and never stands for the brokers' internal topics.
"""

from __future__ import annotations

from collections.abc import Iterable

import re2

from headwater.base.errors import ErrorCode, KafkaError
from headwater.cluster.image.image import ClusterImage, is_internal

_MEMORY_BYTES_MAX = 1 << 20


def _options() -> re2.Options:
    options = re2.Options()
    options.max_mem = _MEMORY_BYTES_MAX
    options.log_errors = False
    return options


_OPTIONS = _options()


class SubscriptionRegex:
    def __init__(self, pattern: str) -> None:
        """Raises INVALID_REGULAR_EXPRESSION."""
        try:
            self._compiled = re2.compile(pattern, options=_OPTIONS)
        except re2.error as error:
            raise KafkaError(
                ErrorCode.INVALID_REGULAR_EXPRESSION,
                f"SubscribedTopicRegex {pattern!r} is not valid: {_reason(error)}.",
            ) from None

    def matching(self, names: Iterable[str]) -> frozenset[str]:
        """Those of the names that it stands for."""
        return frozenset(name for name in names if self._stands_for(name))

    def topics_of(self, image: ClusterImage) -> frozenset[str]:
        return self.matching(image.topics)

    def _stands_for(self, name: str) -> bool:
        return not is_internal(name) and self._compiled.fullmatch(name) is not None


def _reason(error: Exception) -> str:
    reason = error.args[0] if error.args else "unknown"
    return reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
