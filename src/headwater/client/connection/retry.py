"""When to try again: a pause that grows with each attempt, and a deadline for all of them.

Sans-io: the caller says what time it is and does the waiting. Pauses are spread at random, so that
the clients that one broker's end disturbed do not all come back at once.
"""

import random
from typing import Final, NamedTuple

from headwater.base.errors import ErrorCode, KafkaError
from headwater.client.errors import ClientClosedError


class RetryPolicy(NamedTuple):
    """Kafka's `retry.backoff.ms` and `retry.backoff.max.ms`, with their defaults."""

    backoff_ms: int = 100
    backoff_max_ms: int = 1000
    multiplier: float = 2.0
    jitter: float = 0.2

    def pause_s(self, attempt: int, generator: random.Random) -> float:
        """How long to wait after the attempt of this number, of which the first is 1."""
        # Bounded before the power, which would overflow after a thousand attempts.
        exponent = min(attempt - 1, 30)
        pause_ms = min(self.backoff_ms * self.multiplier**exponent, self.backoff_max_ms)
        return pause_ms * (1 + generator.uniform(-self.jitter, self.jitter)) / 1000


class Deadline(NamedTuple):
    """A moment of the loop's time after which nothing more is tried."""

    at_s: float
    timeout_s: float

    @classmethod
    def after(cls, timeout_s: float, now_s: float) -> "Deadline":
        return cls(now_s + timeout_s, timeout_s)

    def left_s(self, now_s: float) -> float:
        return max(0.0, self.at_s - now_s)

    def is_over(self, now_s: float) -> bool:
        return now_s >= self.at_s


# The protocol calls these retriable, but for who asked by name it is the answer: the topic is not
# there. Requests that go to a partition's leader look the topic up first, and may retry them.
FINAL_FOR_NAMES: Final = frozenset(
    {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID}
)


def may_retry(error: Exception, *, unknown_topic_is_final: bool = True) -> bool:
    """Whether the same request, sent again after a look at the metadata, may succeed."""
    if not isinstance(error, KafkaError) or isinstance(error, ClientClosedError):
        return False
    if unknown_topic_is_final and error.code in FINAL_FOR_NAMES:
        return False
    return error.retriable
