"""The heartbeats of a member of a classic group, and what no answer to them means.

They go out every `heartbeat.interval.ms`, one at a time, from the loop of the network, so that what
the user does with records does not hold them up. A coordinator that has not answered one for
`session.timeout.ms` counts as gone: it is looked for again. The member does not lose anything by
that: only a coordinator can say that its partitions are somebody else's.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from headwater.base.errors import ErrorCode, KafkaError
from headwater.client.connection.cluster_connection import Lane
from headwater.client.connection.coordinator_cache import CoordinatorCache
from headwater.client.connection.retry import RetryPolicy
from headwater.client.machines.ask import Ask, CoordinatorOf
from headwater.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse


class Heartbeats:
    """`on_error` gets what an answer, or a failure to get one, says, and the loop's time."""

    def __init__(
        self,
        *,
        interval_s: float,
        session_s: float,
        coordinator: CoordinatorOf,
        coordinators: CoordinatorCache,
        policy: RetryPolicy,
        generator: random.Random,
        request: Callable[[], HeartbeatRequest],
        on_error: Callable[[ErrorCode, float], None],
    ) -> None:
        self._interval_s = interval_s
        self._session_s = session_s
        self._coordinator = coordinator
        self._coordinators = coordinators
        self._policy = policy
        self._generator = generator
        self._request = request
        self._on_error = on_error
        self._due_s: float | None = None
        self._is_under_way = False
        self._failure_count = 0
        self._answered_s = 0.0
        #: Which start a heartbeat belongs to: late answers to earlier ones mean nothing.
        self._run = 0

    @property
    def are_running(self) -> bool:
        return self._due_s is not None or self._is_under_way

    def start(self, now_s: float) -> None:
        self.stop()
        self._due_s = now_s + self._interval_s
        self._answered_s = now_s
        self._failure_count = 0

    def stop(self) -> None:
        """Nothing goes out, and what is still under way is not listened to."""
        self._run += 1
        self._due_s = None
        self._is_under_way = False

    def asks(self, now_s: float) -> list[Ask]:
        if self._due_s is None or now_s < self._due_s:
            return []
        self._due_s = None
        self._is_under_way = True
        run = self._run
        return [
            Ask(
                self._request(),
                self._coordinator,
                lambda answer, at_s: self._answered(run, answer, at_s),
                lambda error, at_s: self._failed(run, error, at_s),
                timeout_s=self._session_s,
                lane=Lane.COORDINATION,
            )
        ]

    def wake_at_s(self) -> float | None:
        return self._due_s

    def _answered(self, run: int, answer: HeartbeatResponse, now_s: float) -> None:
        if run != self._run:
            return
        self._is_under_way = False
        code = ErrorCode.from_wire(answer.error_code)
        self._coordinators.note_error(self._coordinator, answer.error_code)
        if code is ErrorCode.NONE or not code.retriable or code is ErrorCode.REBALANCE_IN_PROGRESS:
            self._answered_s = now_s
            self._failure_count = 0
            self._due_s = now_s + self._interval_s
        else:
            self._retry(now_s)
        if code is not ErrorCode.NONE:
            self._on_error(code, now_s)

    def _failed(self, run: int, error: KafkaError, now_s: float) -> None:
        if run != self._run:
            return
        self._is_under_way = False
        self._coordinators.forget(self._coordinator)
        self._retry(now_s)
        self._on_error(error.code, now_s)

    def _retry(self, now_s: float) -> None:
        if now_s - self._answered_s > self._session_s:
            self._coordinators.forget(self._coordinator)
            self._answered_s = now_s
        self._failure_count += 1
        pause_s = self._policy.pause_s(self._failure_count, self._generator)
        self._due_s = now_s + min(pause_s, self._interval_s)
