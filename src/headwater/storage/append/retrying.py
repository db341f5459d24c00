"""What becomes of a record that comes to a retry topic: another attempt later, or a dead letter.

Whoever could not handle a record sends it here as it came, with all of its headers. How often it
has failed is one of them, `headwater-attempts`, and only the broker counts:

    attempts now     1    2    3   ...  attempts_max   more
    it waits        5 s  10 s  30 s        2 min       and is a dead letter

A dead letter waits as well, for ever, until it is moved to its topic: see `delay/dead_letters`.
"""

from __future__ import annotations

import zlib
from typing import Final

from headwater.base.durations import LONG_MAX, parse_duration_ms
from headwater.base.message_id import MessageId
from headwater.storage.append.delay_request import DelayRequest, last_header
from headwater.storage.log_config import DelayRules, RetryRules
from headwater.wire.delayed.delayed_batch import NEVER_MS
from headwater.wire.delayed.headers import (
    ATTEMPTS_HEADER,
    DEAD_HEADER,
    DELAYED_OFFSET_HEADER,
    FIRST_FAILURE_HEADER,
    LAST_FAILURE_HEADER,
    ORDER_HEADER,
    ORIGIN_HEADER,
    RETRY_AFTER_HEADER,
    SENT_AT_HEADER,
)
from headwater.wire.records import Header, Record

#: A number that nobody reaches, and that a header has room for.
_ATTEMPTS_MAX: Final = 10**9
#: What is written anew each time round, and what the last delivery has left behind.
_REPLACED: Final = frozenset(
    {
        ATTEMPTS_HEADER,
        FIRST_FAILURE_HEADER,
        LAST_FAILURE_HEADER,
        RETRY_AFTER_HEADER,
        SENT_AT_HEADER,
        DELAYED_OFFSET_HEADER,
        ORDER_HEADER,
    }
)


def next_attempt(record: Record, rules: DelayRules, now_ms: int) -> tuple[Record, DelayRequest]:
    """The record as it waits, and for when; ValueError, with a sentence, if its headers lie."""
    headers = record.headers
    attempts = _number(headers, ATTEMPTS_HEADER, _ATTEMPTS_MAX, 0) + 1
    first_ms = _number(headers, FIRST_FAILURE_HEADER, LONG_MAX, now_ms)
    origin = last_header(headers, ORIGIN_HEADER)
    if origin is not None:
        MessageId.parse(origin.decode("ascii", "replace"))
    after = last_header(headers, RETRY_AFTER_HEADER)
    is_dead = attempts > rules.retry.attempts_max or last_header(headers, DEAD_HEADER) is not None
    if is_dead:
        due_ms = NEVER_MS
    elif after is None:
        due_ms = now_ms + _delay_ms(rules.retry, attempts, record)
    else:
        due_ms = now_ms + _asked_ms(after, rules)
    kept = [header for header in headers if header[0] not in _REPLACED]
    kept.append((ATTEMPTS_HEADER, str(attempts).encode()))
    kept.append((FIRST_FAILURE_HEADER, str(first_ms).encode()))
    kept.append((LAST_FAILURE_HEADER, str(now_ms).encode()))
    return record._replace(headers=tuple(kept)), DelayRequest(due_ms)


def _delay_ms(rules: RetryRules, attempts: int, record: Record) -> int:
    delay_ms = rules.delays_ms[min(attempts, len(rules.delays_ms)) - 1]
    if rules.jitter:
        # As good as chance, and the same for whoever appends this record at this attempt.
        seed = b"%d/%d/%b/%b" % (attempts, record.offset, record.key or b"", record.value or b"")
        delay_ms += int(delay_ms * rules.jitter * (zlib.crc32(seed) / 2**32))
    return delay_ms


def _asked_ms(after: bytes, rules: DelayRules) -> int:
    asked_ms = parse_duration_ms(after.decode("ascii", "replace"))
    if asked_ms > rules.max_ms:
        raise ValueError(
            f"Its {RETRY_AFTER_HEADER} is {asked_ms} ms, and delay.max.ms is {rules.max_ms}."
        )
    return asked_ms


def _number(headers: tuple[Header, ...], name: str, most: int, without: int) -> int:
    value = last_header(headers, name)
    if value is None:
        return without
    if not (value.isdigit() and len(value) <= 19 and int(value) <= most):
        raise ValueError(f"Its {name} is {value[:32]!r}, and must be a number up to {most}.")
    return int(value)
