"""What becomes of a record that comes to a retry topic: another attempt later, or a dead letter.

Whoever could not handle a record sends it here as it came, with all of its headers. How often it
has failed is one of them, `headwater-attempts`, and only the broker counts:

    attempts now     1    2    3   ...  attempts_max   more
    it waits        5 s  10 s  30 s        2 min       and is a dead letter

A dead letter waits as well, for ever, until it is moved to its topic: see `delay/dead_letters`.
"""

from __future__ import annotations

import zlib

from headwater.base.durations import parse_duration_ms
from headwater.storage.append.delay_request import DelayRequest
from headwater.storage.log_config import DelayRules, RetryRules
from headwater.wire.delayed.attempts import count_failure
from headwater.wire.delayed.delayed_batch import DUE_MS_MAX, NEVER_MS
from headwater.wire.delayed.headers import RETRY_AFTER_HEADER
from headwater.wire.records import Record


def next_attempt(record: Record, rules: DelayRules, now_ms: int) -> tuple[Record, DelayRequest]:
    """The record as it waits, and for when; ValueError, with a sentence, if its headers lie."""
    failure = count_failure(record.headers, now_ms)
    if failure.is_dead or failure.attempts > rules.retry.attempts_max:
        due_ms = NEVER_MS
    elif failure.after is None:
        delay_ms = _delay_ms(rules.retry, failure.attempts, record)
        due_ms = min(now_ms + min(delay_ms, rules.max_ms), DUE_MS_MAX)
    else:
        due_ms = min(now_ms + _asked_ms(failure.after, rules), DUE_MS_MAX)
    return record._replace(headers=failure.headers), DelayRequest(due_ms)


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
