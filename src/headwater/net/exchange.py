"""One request on its way to its answer.

A connection makes an `Exchange` of each frame and hands it to the request handler. Whoever holds it
completes it exactly once, in the handler or any time later: with an answer, with no answer, or by
giving up on the connection. Requests may be completed in any order; their connection sends the
answers in the order in which the requests came.

The frame is writable and nobody else's: a handler patches record batches in place and writes them
to disk from there. It, and every slice taken of it, stays as it is for as long as somebody holds
it, since the memory is reused only when no view of it is left.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from headwater.base.checks import InvariantError
from headwater.net.region import Part

if TYPE_CHECKING:
    from headwater.net.connection import Connection


class Disconnection:
    """The outcome of a request after which the peer is not served any further."""

    __slots__ = ("reason",)

    def __init__(self, reason: str) -> None:
        self.reason = reason


Outcome = Sequence[Part] | Disconnection


class Exchange:
    """A request (`frame`, without its length), and the way to complete it."""

    __slots__ = ("connection", "frame", "on_abandoned", "outcome", "received_s")

    def __init__(self, connection: Connection, frame: memoryview, received_s: float) -> None:
        self.connection = connection
        self.frame = frame
        self.received_s = received_s
        #: Called if the connection is lost before the exchange is completed; it may complete it.
        self.on_abandoned: Callable[[], None] | None = None
        #: What it was completed with; None as long as it was not.
        self.outcome: Outcome | None = None

    @property
    def is_completed(self) -> bool:
        return self.outcome is not None

    def answer(self, parts: Sequence[Part]) -> None:
        """Send this; the length of all stands in front already."""
        if self.outcome is not None:
            raise InvariantError("a request was completed twice")
        self.outcome = parts
        self.connection.complete(self)

    def answer_nothing(self) -> None:
        """The peer expects no answer to this request."""
        self.answer(())

    def disconnect(self, reason: str) -> None:
        """Send the answers to earlier requests, then close the connection and log the reason."""
        if self.outcome is not None:
            raise InvariantError("a request was completed twice")
        self.outcome = Disconnection(reason)
        self.connection.complete(self)


RequestHandler = Callable[[Exchange], None]
