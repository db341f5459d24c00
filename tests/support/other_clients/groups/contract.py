"""What the tests of consumer groups ask of any client that can be a member of one.

Each client has an adapter beside this module, named like it, and as in `other_clients.contract` it
adds nothing of its own. A member lives in the thread that made it, because some clients insist on
that; `polling` gives it one, `process` a whole process, which can be killed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, Protocol

TopicPartition = tuple[str, int]
Owned = frozenset[TopicPartition]

#: How long one poll may wait for records.
POLL_S = 0.05
HEARTBEAT_MS = 200
#: How soon a client sees that topics have come or grown, where that matters and elsewhere.
QUICK_METADATA_MS = 300
SLOW_METADATA_MS = 60_000
AUTO_COMMIT_MS = 100

#: A session that ends soon where a member is to die, and never by a slow machine elsewhere.
SHORT_SESSION_MS = 1_000
LONG_SESSION_MS = 30_000


class Membership(NamedTuple):
    """How a member takes part in a group."""

    group: str
    topics: tuple[str, ...] = ()
    #: A regular expression instead of topics.
    pattern: str | None = None
    assignors: tuple[str, ...] = ("range",)
    protocol: Literal["classic", "consumer"] = "classic"
    instance_id: str | None = None
    session_timeout_ms: int = LONG_SESSION_MS
    auto_commit: bool = False
    isolation: str = "read_uncommitted"
    metadata_age_ms: int = SLOW_METADATA_MS


class GroupRecord(NamedTuple):
    topic: str
    partition: int
    offset: int
    value: bytes | None


class Event(NamedTuple):
    """What a member is told in the course of a rebalance."""

    kind: Literal["assigned", "revoked", "lost"]
    partitions: Owned


class GroupMember(Protocol):
    """One consumer of a group, which starts at the earliest record where nothing is committed."""

    name: str
    events: list[Event]

    def __init__(self, bootstrap: str, membership: Membership) -> None: ...

    def poll(self) -> list[GroupRecord]:
        """What has come, after a short while at most. Must be called often."""

    def assignment(self) -> Owned: ...

    def commit(self, offsets: Mapping[TopicPartition, int] | None = None) -> None:
        """Commit what was polled, or what is given, and wait until it is."""

    def commit_later(self) -> None:
        """Commit what was polled, and do not wait."""

    def committed(self, partition: TopicPartition) -> int | None:
        """What the broker says is committed."""

    def group_metadata(self) -> Any:
        """What the same client's transactional producer wants to know of the member."""

    def close(self) -> None:
        """Leave in order."""
