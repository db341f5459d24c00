"""What a client gets from the world: a clock, connections and randomness.

A client that a user makes gets the operating system's. The simulator gives it virtual time and a
seeded generator, and a test may lead its connections through a proxy: `in_environment` gives the
class of such clients. So no constructor has parameters that only those two would use.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import TypeVar, cast

from headwater.base.clocks import Clock, SystemClock
from headwater.client.connection.cluster_connection import Connect, connect_channel


@dataclass(frozen=True, slots=True)
class ClientEnvironment:
    clock: Clock = field(default_factory=SystemClock)
    connect: Connect = connect_channel
    generator: random.Random = field(default_factory=random.Random)


class HasEnvironment:
    """A client; what its constructor does not get from the user it gets from here."""

    #: None for the world as it is.
    _given_environment: ClientEnvironment | None = None

    def _make_environment(self) -> ClientEnvironment:
        """The environment given, or else a real one with a generator of this client's own."""
        return self._given_environment or ClientEnvironment()


ClientT = TypeVar("ClientT", bound=HasEnvironment)


def in_environment(kind: type[ClientT], environment: ClientEnvironment) -> type[ClientT]:
    """The same kind of client, made with the same arguments, but in this environment."""
    placed = type(kind.__name__, (kind,), {"_given_environment": environment})
    return cast("type[ClientT]", placed)
