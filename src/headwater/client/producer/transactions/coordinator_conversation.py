"""Asks coordinators one thing at a time, again while an error may pass.

Sans-io. Whoever owns it says what the next step is, whenever it is time to ask, and hears of errors
that do not pass.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from headwater.base.errors import ErrorCode, KafkaError
from headwater.client.connection.coordinator_cache import CoordinatorCache
from headwater.client.connection.retry import RetryPolicy
from headwater.client.machines.ask import Ask, CoordinatorOf
from headwater.client.producer.transactions.coordinator_errors import (
    Meaning,
    meaning_for_coordination,
)
from headwater.client.producer.transactions.steps import Step

#: The end of the previous transaction is near when a coordinator says that it is busy with it.
_BUSY_BACKOFF_MS: Final = 20


class CoordinatorConversation:
    def __init__(
        self,
        *,
        coordinators: CoordinatorCache,
        policy: RetryPolicy,
        generator: random.Random,
        timeout_s: float,
        next_step: Callable[[], Step | None],
        on_refusal: Callable[[Step, KafkaError], None],
    ) -> None:
        self._coordinators = coordinators
        self._policy = policy
        self._busy_policy = policy._replace(backoff_ms=min(_BUSY_BACKOFF_MS, policy.backoff_ms))
        self._generator = generator
        self._timeout_s = timeout_s
        self._next_step = next_step
        self._on_refusal = on_refusal
        self._is_closed = False
        self._attempt_count = 0
        self._not_before_s = 0.0
        self.is_under_way = False
        #: Why the last attempt failed that is going to be repeated.
        self.trouble: KafkaError | None = None

    def close(self) -> None:
        """Ask nothing any more, and hear nothing either."""
        self._is_closed = True

    def asks(self, now_s: float) -> Sequence[Ask]:
        if self._is_closed or self.is_under_way or now_s < self._not_before_s:
            return ()
        step = self._next_step()
        if step is None:
            return ()
        self.is_under_way = True
        step.begin()
        question = step.question
        return [
            Ask(
                question.request,
                question.target,
                partial(self._answered, step),
                partial(self._refused, step),
                timeout_s=self._timeout_s,
                version_max=question.version_max,
            )
        ]

    def wake_at_s(self, now_s: float) -> float | None:
        if self._is_closed or self.is_under_way or now_s >= self._not_before_s:
            return None
        return None if self._next_step() is None else self._not_before_s

    def _answered(self, step: Step, answer: Any, now_s: float) -> None:
        error = step.question.error_of(answer)
        if error is not None:
            self._refused(step, error, now_s)
            return
        self.is_under_way = False
        self._attempt_count = 0
        self.trouble = None
        if not self._is_closed:
            step.finish(answer)

    def _refused(self, step: Step, error: KafkaError, now_s: float) -> None:
        self.is_under_way = False
        if self._is_closed:
            return
        target = step.question.target
        if isinstance(target, CoordinatorOf):
            self._coordinators.note_error(target, error.code)
        if meaning_for_coordination(error) is not Meaning.RETRY:
            self._attempt_count = 0
            self._on_refusal(step, error)
            return
        self._attempt_count += 1
        self.trouble = error
        is_busy = error.code is ErrorCode.CONCURRENT_TRANSACTIONS
        policy = self._busy_policy if is_busy else self._policy
        self._not_before_s = now_s + policy.pause_s(self._attempt_count, self._generator)
