"""What a canary sent, what came back, and what that says: lost, doubled, or only late.

Sans-io. A record is *lost* when a reader that takes its partition in order has gone past the offset
that was acknowledged for it, and it did not come: then it cannot come any more. However long it
takes, a record that the reader has not reached is only *late*. So a broker that is away for an hour
makes records late and none of them lost. What the producer gave up is *failed*: it may have been
written or not, and either is right.

A record that comes at two offsets is *doubled*; one that is read twice at one offset was only read
again, as after a leader that had to cut its log.

Bounded: of a partition `OUTSTANDING_MAX` records are under way, and no more are sent before some
come back; `REMEMBERED_MAX` of those that came, failed or were lost are remembered.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeVar

OUTSTANDING_MAX: Final = 10_000
REMEMBERED_MAX: Final = 10_000
#: Of one record no more copies are told apart.
COPIES_MAX: Final = 100
#: The round trips that percentiles are made of, by broker.
ROUND_TRIPS_MAX: Final = 10_000

Value = TypeVar("Value")


class BrokerFigures(NamedTuple):
    """What is known of the records that were sent to one broker."""

    broker_id: int
    sent: int
    received: int
    lost: int
    doubled: int
    failed: int
    #: Not sent, because too many were under way.
    skipped: int
    #: Sent, and neither back nor lost nor failed.
    outstanding: int
    #: Of these, what is longer under way than it should be.
    late: int
    p50_ms: float | None
    p99_ms: float | None


@dataclass(slots=True)
class _Counts:
    sent: int = 0
    received: int = 0
    lost: int = 0
    doubled: int = 0
    failed: int = 0
    skipped: int = 0
    round_trips_s: deque[float] = field(default_factory=lambda: deque(maxlen=ROUND_TRIPS_MAX))


@dataclass(slots=True)
class _Sent:
    broker_id: int
    sent_s: float
    #: Where it was written, once that was acknowledged.
    offset: int | None = None


class _Came(NamedTuple):
    broker_id: int
    #: Where it was read: one, unless it is doubled.
    offsets: list[int]


class _Partition:
    __slots__ = ("came", "failed", "lost", "next_number", "outstanding", "position")

    def __init__(self) -> None:
        self.next_number = 0
        #: Up to where the reader has read.
        self.position = 0
        self.outstanding: dict[int, _Sent] = {}
        self.came: dict[int, _Came] = {}
        self.failed: dict[int, _Sent] = {}
        self.lost: dict[int, _Sent] = {}


class CanaryLedger:
    """Of one run; times are a monotonic clock's, in seconds."""

    def __init__(self) -> None:
        self._partitions: dict[int, _Partition] = {}
        self._counts: dict[int, _Counts] = {}

    # -- what happens ----------------------------------------------------------------------------

    def knows(self, broker_id: int) -> None:
        """The broker is to be told of, also if nothing was sent to it yet."""
        self._counts.setdefault(broker_id, _Counts())

    def sending(self, partition: int, broker_id: int, now_s: float) -> int | None:
        """The number of the next record; None if too much is under way to send another."""
        counts = self._counts.setdefault(broker_id, _Counts())
        known = self._partitions.setdefault(partition, _Partition())
        if len(known.outstanding) >= OUTSTANDING_MAX:
            counts.skipped += 1
            return None
        number = known.next_number
        known.next_number += 1
        known.outstanding[number] = _Sent(broker_id, now_s)
        counts.sent += 1
        return number

    def acknowledged(self, partition: int, number: int, offset: int) -> None:
        known = self._partitions[partition]
        sent = known.outstanding.get(number)
        if sent is not None:
            sent.offset = offset
            if offset < known.position:
                self._settle_lost(known, number)

    def failed(self, partition: int, number: int) -> None:
        """The producer gave it up; it may be there all the same."""
        known = self._partitions[partition]
        sent = known.outstanding.pop(number, None)
        if sent is not None:
            self._counts[sent.broker_id].failed += 1
            _remember(known.failed, number, sent)

    def came(self, partition: int, offset: int, number: int, now_s: float) -> None:
        """A record of this run was read."""
        known = self._partitions.get(partition)
        if known is None or not 0 <= number < known.next_number:
            return
        earlier = known.came.get(number)
        if earlier is not None:
            if offset not in earlier.offsets and len(earlier.offsets) < COPIES_MAX:
                earlier.offsets.append(offset)
                self._counts[earlier.broker_id].doubled += 1
            return
        sent = known.outstanding.pop(number, None) or known.failed.pop(number, None)
        if sent is None and (sent := known.lost.pop(number, None)) is not None:
            self._counts[sent.broker_id].lost -= 1
        if sent is None:
            return  # It came so long ago that nobody remembers where.
        counts = self._counts[sent.broker_id]
        counts.received += 1
        counts.round_trips_s.append(now_s - sent.sent_s)
        _remember(known.came, number, _Came(sent.broker_id, [offset]))

    def passed(self, partition: int, position: int) -> None:
        """The reader has read all that there is in front of `position`."""
        known = self._partitions.get(partition)
        if known is None or known.position == position:
            return
        known.position = position
        gone = [
            number
            for number, sent in known.outstanding.items()
            if sent.offset is not None and sent.offset < position
        ]
        for number in gone:
            self._settle_lost(known, number)

    def _settle_lost(self, known: _Partition, number: int) -> None:
        sent = known.outstanding.pop(number)
        self._counts[sent.broker_id].lost += 1
        _remember(known.lost, number, sent)

    # -- what is known ---------------------------------------------------------------------------

    @property
    def outstanding_count(self) -> int:
        return sum(len(each.outstanding) for each in self._partitions.values())

    def waiting_partitions(self) -> Iterator[int]:
        """Those with records that have not come back."""
        return (number for number, each in self._partitions.items() if each.outstanding)

    @property
    def has_wrong(self) -> bool:
        """Whether anything was lost or doubled."""
        return any(each.lost or each.doubled for each in self._counts.values())

    def figures(self, now_s: float, late_s: float) -> list[BrokerFigures]:
        """By broker; `late_s` is how long a round trip may take before it is late."""
        outstanding = dict.fromkeys(self._counts, 0)
        late = dict.fromkeys(self._counts, 0)
        for partition in self._partitions.values():
            for sent in partition.outstanding.values():
                outstanding[sent.broker_id] += 1
                late[sent.broker_id] += now_s - sent.sent_s > late_s
        return [
            BrokerFigures(
                broker_id,
                counts.sent,
                counts.received,
                counts.lost,
                counts.doubled,
                counts.failed,
                counts.skipped,
                outstanding[broker_id],
                late[broker_id],
                *_percentiles_ms(counts.round_trips_s),
            )
            for broker_id, counts in sorted(self._counts.items())
        ]


def _remember(known: dict[int, Value], number: int, value: Value) -> None:
    known[number] = value
    if len(known) > REMEMBERED_MAX:
        del known[next(iter(known))]


def _percentiles_ms(times_s: deque[float]) -> tuple[float | None, float | None]:
    """The 50th and the 99th; None if there is nothing."""
    if not times_s:
        return None, None
    ordered = sorted(times_s)
    last = len(ordered) - 1
    return round(ordered[last // 2] * 1000, 1), round(ordered[-(-last * 99 // 100)] * 1000, 1)
