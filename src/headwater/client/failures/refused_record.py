"""What can still be sent on of a failed record that its retry topic has refused: the most there is.

First goes what its worker has put on it and can be done without; then all other headers, which
makes a dead letter of it, for nobody knows any more how often it failed. Key and value go only when
nothing else is left that could have been refused.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from headwater.base.errors import ErrorCode
from headwater.client.failures.failed_record import ERROR_BYTES_MAX, bounded, origin_value
from headwater.client.producer.record import ProducerRecord
from headwater.wire.delayed.headers import (
    DEAD_HEADER,
    ERROR_HEADER,
    ERROR_STACK_HEADER,
    ORIGIN_HEADER,
    RETRY_AFTER_HEADER,
)
from headwater.wire.records import Header

_TOO_LARGE: Final = frozenset({ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE})
#: All that the barest dead letters have.
_BARE: Final = frozenset({ORIGIN_HEADER, ERROR_HEADER, DEAD_HEADER})


class Reduced(NamedTuple):
    produced: ProducerRecord
    is_dead: bool
    #: What was left out, in words.
    without: str


def reduced(produced: ProducerRecord, code: ErrorCode, reason: str) -> Reduced | None:
    """The next less of it to be tried; None if nothing is left to take away."""
    headers: tuple[Header, ...] = tuple(produced.headers or ())  # type: ignore[arg-type]  # Bytes.
    names = {name for name, _ in headers}
    aside = ERROR_STACK_HEADER if code in _TOO_LARGE else RETRY_AFTER_HEADER
    if aside in names:
        kept = tuple(header for header in headers if header[0] != aside)
        return Reduced(produced._replace(headers=kept), DEAD_HEADER in names, f"its {aside}")
    bare = _bare_headers(headers, reason)
    if not names <= _BARE or DEAD_HEADER not in names:
        return Reduced(produced._replace(headers=bare), True, "its headers")
    if produced.key is None and produced.value is None:
        return None
    without_contents = produced._replace(key=None, value=None, headers=bare)
    return Reduced(without_contents, True, "key and value")


def _bare_headers(headers: tuple[Header, ...], reason: str) -> tuple[Header, ...]:
    origin = origin_value(headers)
    told = bounded(reason, ERROR_BYTES_MAX)
    named = () if origin is None else ((ORIGIN_HEADER, origin),)
    return (*named, (ERROR_HEADER, told), (DEAD_HEADER, told))
