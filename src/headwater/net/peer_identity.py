"""Who is at the other end of an accepted connection.

Everybody is an anonymous client until something was proven: today, that a broker knows the secret
of its cluster. What a connection may do is asked of this object alone, so that another kind of
proof has one place to go.
"""

from typing import Final, NamedTuple


class PeerIdentity(NamedTuple):
    #: The broker of this cluster that it has proven to be; None for a client.
    broker_id: int | None = None

    @property
    def is_broker(self) -> bool:
        return self.broker_id is not None


ANONYMOUS: Final = PeerIdentity()
