"""When a record that failed is tried again, and how often, before it is a dead letter.

The retry topic has the policy: its broker waits and counts. The worker takes it to create that
topic, and with `keep_order`, where it waits and counts itself.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from headwater.base.durations import show_duration
from headwater.client.failures.verdicts import AfterLike, after_ms_of
from headwater.wire.delayed.retry_topics import dead_letter_topic, retry_queue, retry_topic

#: The setting that makes a topic one in which records wait by how often they failed.
DELAY_MODE: Final = "delay.mode"
RETRY_MODE: Final = "retry"
#: The longest delay that a record of the topic may ask for.
DELAY_MAX_MS: Final = "delay.max.ms"
#: Those of its policy, and of the group whose queue it is.
RETRY_DELAYS: Final = "retry.delays"
RETRY_GROUP: Final = "retry.group"

_DELAYS: Final = ("5s", "10s", "30s", "1m", "2m")


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """After the n-th failure a record waits for the n-th delay, after more for the last one."""

    delays: Sequence[AfterLike] = _DELAYS
    #: How often it is tried again before it is given up; 0 for once for each delay.
    attempts: int = 0
    #: By how much of itself, at random, a delay may be longer.
    jitter: float = 0.0
    #: Whether there is a topic for each delay, and not one for all of them.
    queues: bool = False
    #: No record waits longer, whatever its jitter or its handler says; None for what brokers allow.
    max_delay: AfterLike | None = None
    _delays_ms: tuple[int, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        delays = [self.delays] if isinstance(self.delays, str) else list(self.delays)
        if not delays:
            raise ValueError("A retry policy needs at least one delay.")
        if self.attempts < 0:
            raise ValueError(f"attempts cannot be {self.attempts}: it must not be negative.")
        if not 0 <= self.jitter <= 1:
            raise ValueError(f"jitter cannot be {self.jitter}: it must be from 0 to 1.")
        delays_ms = tuple(after_ms_of(delay) for delay in delays)
        if self.capped_ms(max(delays_ms)) < max(delays_ms):
            raise ValueError(
                f"The delay {show_duration(max(delays_ms))} is longer than max_delay, which is "
                f"{self.max_delay}."
            )
        object.__setattr__(self, "_delays_ms", delays_ms)

    @property
    def attempts_max(self) -> int:
        return self.attempts or len(self._delays_ms)

    def delay_s(self, failure_count: int) -> float:
        """How long to wait after so many failures."""
        delay_ms = self._delays_ms[min(failure_count, len(self._delays_ms)) - 1]
        return self.capped_ms(delay_ms * (1 + self.jitter * random.random())) / 1000

    def capped_ms(self, delay_ms: float) -> float:
        """A delay that somebody asks for, or what is allowed of it."""
        return delay_ms if self.max_delay is None else min(delay_ms, after_ms_of(self.max_delay))

    @property
    def delays_ms(self) -> tuple[int, ...]:
        """By attempt; beyond the last one that counts."""
        return self._delays_ms

    def topic_names(self, group: str) -> list[str]:
        """The retry topic, or the queues: one for each delay, and for equal ones one."""
        if not self.queues:
            return [retry_topic(group)]
        return list(dict.fromkeys(retry_queue(group, delay_ms) for delay_ms in self._delays_ms))

    def topic_configs(self, group: str) -> dict[str, str]:
        """What makes a topic the retry topic of a group, or one of its queues.

        Queues have the whole policy too: how long a record waits is decided by how often it failed,
        so one that comes to another queue than its own waits no less, and no more.
        """
        configs = {
            DELAY_MODE: RETRY_MODE,
            RETRY_DELAYS: ",".join(map(show_duration, self._delays_ms)),
            "retry.attempts": str(self.attempts),
            "retry.jitter": str(self.jitter),
            "retry.dead.letter.topic": dead_letter_topic(group),
        }
        if self.max_delay is not None:
            configs[DELAY_MAX_MS] = str(after_ms_of(self.max_delay))
        return configs | {RETRY_GROUP: group} if self.queues else configs
