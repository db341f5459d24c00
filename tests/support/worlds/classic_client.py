"""A client of a classic group that believes what it is told, for tests that drive many of them."""

from __future__ import annotations

from typing import TypeVar

from headwater.base.errors import ErrorCode
from headwater.wire.messages.join_group import JoinGroupResponse
from headwater.wire.messages.sync_group import SyncGroupResponse
from tests.support.worlds.shard_world import Answer

R = TypeVar("R")

#: After these a client joins as somebody new.
LOST_IDENTITY = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID)


class Client:
    """What a client knows of itself, and what it waits for."""

    def __init__(self, instance: str | None) -> None:
        self.instance = instance
        self.member_id = ""
        self.generation = -1
        #: Whom it has to assign to, if it leads.
        self.roster: list[str] | None = None
        self.needs_assignment = False
        self.joining: Answer[JoinGroupResponse] | None = None
        self.syncing: tuple[int, Answer[SyncGroupResponse]] | None = None

    def forget(self) -> None:
        self.member_id, self.generation, self.roster = "", -1, None

    @property
    def is_content(self) -> bool:
        """Whether it has what it wants: a generation, and an assignment of it."""
        is_waiting = self.joining is not None or self.syncing is not None
        return self.generation >= 0 and not self.needs_assignment and not is_waiting

    @property
    def owner(self) -> str:
        return self.instance or self.member_id


def value_of(client: Client, answer: Answer[R]) -> R | None:
    """The answer, if it is no error; after errors a client joins again, perhaps as another."""
    if answer.error is not None:
        client.generation = -1
        if answer.error.code in LOST_IDENTITY:
            client.forget()
    return answer.value
