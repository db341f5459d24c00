"""What the sans-io parts of a client have in common: they ask for requests to be sent.

A `Machine` is a state machine without input or output: a sender, a fetcher, a member of a group. A
`Driver` asks it what to send, sends that, and hands each outcome back; the machine is woken for an
outcome, for a moment that it named, and whenever its owner says that something has changed. So the
same machine runs behind threads, on asyncio and in the simulator, and a test can play the cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from headwater.base.errors import KafkaError
from headwater.client.connection.cluster_connection import TIMEOUT_S, Lane
from headwater.client.connection.coordinators import CoordinatorKind
from headwater.wire.schema import Message


class CoordinatorOf(NamedTuple):
    """Whichever broker coordinates that group or transactional id at the moment."""

    kind: CoordinatorKind
    key: str

    def __str__(self) -> str:
        return self.kind.subject(self.key)


#: A broker by its id, the coordinator of something, or any broker.
Target = int | CoordinatorOf | None


@dataclass(slots=True, eq=False)
class Ask:
    """A request to be sent once, and who hears what became of it: exactly one of the two calls.

    `on_answer` gets the response and the loop's time; `on_failure` an error of the network, of the
    search for the coordinator, or of the time limit, and the time. A response that holds an error
    code is an answer. `version_max` bounds the version, for who cannot say what newer ones ask for.
    """

    request: Message
    target: Target
    on_answer: Callable[[Any, float], None]
    on_failure: Callable[[KafkaError, float], None]
    timeout_s: float = TIMEOUT_S
    version_max: int | None = None
    lane: Lane = Lane.ORDINARY
    #: False for produce requests with acks=0: `on_answer` then gets None once it is on its way.
    is_answered: bool = True


class Machine(Protocol):
    def asks(self, now_s: float) -> Sequence[Ask]:
        """What is to be sent now. Whatever is returned counts as sent."""
        ...

    def wake_at_s(self, now_s: float) -> float | None:
        """When to ask again if nothing happens until then."""
        ...
