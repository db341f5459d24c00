"""What a consumer's core needs of its group, whichever protocol the group speaks.

A membership is a sans-io machine on the network side. It never changes what is assigned by itself:
it tells an event, and the core, in the thread that polls, commits if it does so automatically, runs
the user's listener, changes the assignment, and says that the event is handled. Only then does the
membership go on: join again, or tell its coordinator what it has let go of. Meanwhile heartbeats go
out, so that a slow listener does not cost the membership, until `max.poll.interval.ms` is over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum
from typing import NamedTuple, Protocol

from headwater.base.errors import KafkaError
from headwater.base.ids import TopicPartition
from headwater.client.machines.ask import Machine
from headwater.client.machines.completion import Completion


class RebalanceKind(Enum):
    #: Partitions to be let go of in order: what is done can still be committed.
    REVOKED = "revoked"
    #: Partitions that are somebody else's already: committing would fail.
    LOST = "lost"
    #: Partitions that are added; perhaps none, which tells that a rebalance is over.
    ASSIGNED = "assigned"


class RebalanceEvent(NamedTuple):
    kind: RebalanceKind
    partitions: frozenset[TopicPartition]


class GroupIdentity(NamedTuple):
    """Who commits: checked by the coordinator, and sent along by transactional producers."""

    group_id: str
    #: Generation of a classic group, member epoch of a consumer group; -1 for who is no member.
    generation_id: int = -1
    member_id: str = ""
    instance_id: str | None = None


class Subscription(NamedTuple):
    """Names of topics, or a regular expression for them."""

    topics: frozenset[str] = frozenset()
    pattern: str | None = None


class Membership(Machine, Protocol):
    @property
    def identity(self) -> GroupIdentity: ...

    @property
    def event(self) -> RebalanceEvent | None:
        """What the polling thread has to handle now; stays until `event_handled`."""
        ...

    @property
    def failure(self) -> KafkaError | None:
        """What cannot pass, for the user to hear once (`take_failure`)."""
        ...

    @property
    def is_stable(self) -> bool:
        """Whether it is a member, with its assignment, and no rebalance is under way."""
        ...

    def take_failure(self) -> KafkaError | None: ...

    def subscribe(self, subscription: Subscription, now_s: float) -> None:
        """Join with these topics, or join again if they are others. An empty one leaves."""
        ...

    def metadata_changed(self, now_s: float) -> None:
        """Topics or partition counts may be others."""
        ...

    def event_handled(self, owned: Iterable[TopicPartition], now_s: float) -> None:
        """The event is handled, and these partitions are what the consumer has now."""
        ...

    def polled(self, now_s: float) -> None:
        """The user has called `poll`: `max.poll.interval.ms` starts anew."""
        ...

    def leave(self, now_s: float) -> Completion[None]:
        """Leave the group (static members stay); done when the coordinator knows, or is away."""
        ...


#: Tells the core that `event` or `failure` has changed, so that a waiting `poll` returns to look.
Notify = Callable[[], None]
