"""Members that wait for an answer, each for one at most."""

from __future__ import annotations

from typing import Generic, TypeVar

from headwater.base.errors import ErrorCode, KafkaError
from headwater.coordinator.outcome import Reply

R = TypeVar("R")


class ParkedMembers(Generic[R]):
    """Answers that are owed to members, by member id."""

    def __init__(self) -> None:
        self._replies: dict[str, Reply[R]] = {}

    def __len__(self) -> int:
        return len(self._replies)

    def __contains__(self, member_id: object) -> bool:
        return member_id in self._replies

    def park(self, member_id: str, reply: Reply[R]) -> None:
        """Let a member wait. If it waits already, it has lost that answer and asks again."""
        self.fail(
            member_id,
            KafkaError(ErrorCode.REBALANCE_IN_PROGRESS, "The member has asked once more."),
        )
        self._replies[member_id] = reply

    def send(self, member_id: str, answer: R) -> bool:
        """Answer a member; whether it waits for that."""
        reply = self._replies.pop(member_id, None)
        if reply is None:
            return False
        reply.send(answer)
        return True

    def fail(self, member_id: str, error: KafkaError) -> None:
        """Tell a member that there will be no answer, if it waits for one."""
        reply = self._replies.pop(member_id, None)
        if reply is not None:
            reply.fail(error)

    def fail_all(self, error: KafkaError) -> list[str]:
        """The same for all; returns who they were."""
        replies, self._replies = self._replies, {}
        for reply in replies.values():
            reply.fail(error)
        return list(replies)
