"""Tells a coordinator that a member leaves its group, so that others need not wait for its session.

A courtesy: if the coordinator cannot be told in a few attempts, the session ends the membership.
"""

from __future__ import annotations

import random
from typing import Any, Final, NamedTuple

from headwater.base.errors import ErrorCode, KafkaError
from headwater.client.connection.cluster_connection import Lane
from headwater.client.connection.coordinator_cache import CoordinatorCache
from headwater.client.connection.retry import RetryPolicy
from headwater.client.consumer.membership.errors import CLASSIC, Reaction, reaction_to
from headwater.client.machines.ask import Ask, CoordinatorOf
from headwater.client.machines.completion import Completion
from headwater.wire.schema import Message

ATTEMPT_COUNT_MAX: Final = 5
_AGAIN: Final = frozenset({Reaction.RETRY, Reaction.FIND_COORDINATOR})


class _Farewell(NamedTuple):
    request: Message
    completion: Completion[None]
    attempt_number: int
    due_s: float


class GroupLeaving:
    def __init__(
        self,
        coordinator: CoordinatorOf,
        coordinators: CoordinatorCache,
        policy: RetryPolicy,
        generator: random.Random,
        *,
        timeout_s: float,
        lane: Lane,
    ) -> None:
        self._coordinator = coordinator
        self._coordinators = coordinators
        self._policy = policy
        self._generator = generator
        self._timeout_s = timeout_s
        self._lane = lane
        self._due: list[_Farewell] = []

    def begin(self, request: Message, now_s: float) -> Completion[None]:
        """Done when the coordinator knows, or could not be told."""
        completion: Completion[None] = Completion()
        self._due.append(_Farewell(request, completion, 1, now_s))
        return completion

    def asks(self, now_s: float) -> list[Ask]:
        due = [each for each in self._due if each.due_s <= now_s]
        self._due = [each for each in self._due if each.due_s > now_s]
        return [self._ask(each) for each in due]

    def wake_at_s(self) -> float | None:
        return min((each.due_s for each in self._due), default=None)

    def _ask(self, farewell: _Farewell) -> Ask:
        def answered(answer: Any, now_s: float) -> None:
            self._coordinators.note_error(self._coordinator, answer.error_code)
            self._outcome(farewell, ErrorCode.from_wire(answer.error_code), now_s)

        def failed(error: KafkaError, now_s: float) -> None:
            self._coordinators.forget(self._coordinator)
            self._outcome(farewell, error.code, now_s)

        return Ask(
            farewell.request,
            self._coordinator,
            answered,
            failed,
            timeout_s=self._timeout_s,
            lane=self._lane,
        )

    def _outcome(self, farewell: _Farewell, code: ErrorCode, now_s: float) -> None:
        number = farewell.attempt_number
        if reaction_to(CLASSIC, code) in _AGAIN and number < ATTEMPT_COUNT_MAX:
            due_s = now_s + self._policy.pause_s(number, self._generator)
            self._due.append(farewell._replace(attempt_number=number + 1, due_s=due_s))
        else:
            # Whatever else it says, the member is not in the group, or will be out of it soon.
            farewell.completion.succeed(None)
