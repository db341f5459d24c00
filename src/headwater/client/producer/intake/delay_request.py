"""What a `send` asks for besides its record: that it is delivered later."""

from __future__ import annotations

from typing import NamedTuple, TypedDict

from headwater.client.delay_times import DelayLike, MomentLike, delay_ms_of, moment_ms_of
from headwater.client.message_id import sender_id_bytes
from headwater.wire.delayed.headers import (
    DELAY_HEADER,
    DELAY_ID_HEADER,
    DELIVER_AT_HEADER,
    EXPIRE_AT_HEADER,
)
from headwater.wire.records import Header


class DelayArguments(TypedDict, total=False):
    """What `send` takes for a record that is delivered later.

    They are gathered in a dict because most calls have none of them: an empty dict costs less than
    four arguments that are None.
    """

    #: How much later: text such as "30s", a timedelta, or milliseconds.
    delay: DelayLike | None
    #: When: a datetime, or milliseconds since 1970.
    deliver_at: MomentLike | None
    #: A name of the sender's, by which the message can be cancelled.
    delay_id: str | bytes | None
    #: From when on the message is not delivered any more.
    expire_at: MomentLike | None


class DelayRequest(NamedTuple):
    """Times are in ms since 1970; of `delay_ms` and `deliver_at_ms` one is there at most."""

    delay_ms: int | None
    deliver_at_ms: int | None
    sender_id: bytes | None
    expire_at_ms: int | None

    @property
    def has_time(self) -> bool:
        return self.delay_ms is not None or self.deliver_at_ms is not None

    def delay_from(self, now_ms: int) -> int:
        """How long it is to wait; a time that is over is due at once."""
        if self.deliver_at_ms is not None:
            return max(0, self.deliver_at_ms - now_ms)
        return self.delay_ms or 0

    def due_headers(self) -> tuple[Header, ...]:
        """The headers that tell a broker when it is due."""
        if self.delay_ms is not None:
            return ((DELAY_HEADER, str(self.delay_ms).encode()),)
        if self.deliver_at_ms is not None:
            return ((DELIVER_AT_HEADER, str(self.deliver_at_ms).encode()),)
        return ()

    def other_headers(self) -> tuple[Header, ...]:
        """Those with the sender's id, and until when it is worth anything."""
        headers: tuple[Header, ...] = ()
        if self.sender_id is not None:
            headers += ((DELAY_ID_HEADER, self.sender_id),)
        if self.expire_at_ms is not None:
            headers += ((EXPIRE_AT_HEADER, str(self.expire_at_ms).encode()),)
        return headers


def read_delay_request(given: DelayArguments, *, has_timestamp: bool) -> DelayRequest | None:
    """What the arguments of a `send` say; `TypeError` or `ValueError`, with a sentence, if wrong.

    None if all of them are None. A record's own time, which counts in some topics, is as good as a
    delay.
    """
    for name in given:
        if name not in DelayArguments.__annotations__:
            raise TypeError(f"send() has no argument {name!r}.")
    delay, deliver_at = given.get("delay"), given.get("deliver_at")
    delay_id, expire_at = given.get("delay_id"), given.get("expire_at")
    if all(value is None for value in given.values()):
        return None
    if delay is not None and deliver_at is not None:
        raise ValueError("Give either delay or deliver_at, not both.")
    if delay is None and deliver_at is None and not has_timestamp:
        raise ValueError("delay_id and expire_at are for records that wait: give a delay too.")
    return DelayRequest(
        None if delay is None else delay_ms_of(delay),
        None if deliver_at is None else moment_ms_of(deliver_at, "deliver_at"),
        None if delay_id is None else sender_id_bytes(delay_id),
        None if expire_at is None else moment_ms_of(expire_at, "expire_at"),
    )
