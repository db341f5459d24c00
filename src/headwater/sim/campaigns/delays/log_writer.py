"""Who writes to the log of a campaign: messages of all kinds, in transactions or not."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Final

from headwater.sim.campaigns.delays.lone_partition import LonePartition
from headwater.sim.clock import SimulatedClock
from headwater.storage.errors import OutOfOrderSequenceError
from headwater.storage.producers.entry import AppendOrigin
from headwater.wire.records import (
    Compression,
    ControlType,
    Header,
    Record,
    encode_batch,
    encode_end_transaction_marker,
)

_HOUR_MS: Final = 3_600_000
DELAYS_MS: Final = (0, 5, 400, 3_000, 20_000, 90_000, 2 * _HOUR_MS, 30 * _HOUR_MS, 60 * _HOUR_MS)
SENDER_IDS: Final = (b"", b"", b"a", b"b", b"c", b"\xff\xfe")
_PRODUCER_COUNT: Final = 3


class LogWriter:
    """`some_offset` draws that of a message to be cancelled."""

    #: Where it writes: another object after each opening of the log.
    partition: LonePartition

    def __init__(
        self,
        rng: random.Random,
        clock: SimulatedClock,
        some_offset: Callable[[], int],
        *,
        cancels_in_transactions: bool,
    ) -> None:
        self._rng = rng
        self._clock = clock
        self._some_offset = some_offset
        self._cancels_in_transactions = cancels_in_transactions
        self._value_number = 0
        self._sequences: dict[int, int] = {}
        self._next_producer_id = 100
        self.renew_producers()

    def renew_producers(self) -> None:
        """As after InitProducerId: nothing is known of them."""
        for _ in range(_PRODUCER_COUNT):
            self._sequences[self._next_producer_id] = 0
            self._next_producer_id += 1
        for old in list(self._sequences)[:-_PRODUCER_COUNT]:
            del self._sequences[old]

    def send(self) -> None:
        producer_id, transactional = -1, False
        if self._rng.random() < 0.5:
            producer_id = self._rng.choice(list(self._sequences))
            transactional = self._rng.random() < 0.7 or self._is_open(producer_id)
        cancels = self._cancels_in_transactions or not transactional
        count = self._rng.choice((1, 1, 2, 5))
        records = [self._record(number, cancels=cancels) for number in range(count)]
        sequence = self._sequences.get(producer_id, -1)
        batch = encode_batch(
            records,
            compression=self._rng.choice((Compression.NONE, Compression.GZIP)),
            producer_id=producer_id,
            producer_epoch=-1 if producer_id < 0 else 0,
            base_sequence=sequence,
            transactional=transactional,
        )
        try:
            self.partition.append(batch, acks=1, now_ms=self._clock.wall_ms())
        except OutOfOrderSequenceError:
            self.renew_producers()  # The log has forgotten it with its records.
            return
        if producer_id >= 0:
            self._sequences[producer_id] += len(records)

    def _is_open(self, producer_id: int) -> bool:
        return self.partition.log.producer_states.has_open_transaction(producer_id, 0)

    def _record(self, number: int, *, cancels: bool) -> Record:
        rng, now_ms = self._rng, self._clock.wall_ms()
        self._value_number += 1
        value = b"%d " % self._value_number + bytes(rng.choice((0, 40, 700)))
        headers: list[Header] = []
        chance = rng.random()
        if chance < 0.12 and cancels:
            headers.append(("headwater-delay", b"cancel"))
            sender_id = rng.choice(SENDER_IDS)
            if sender_id:
                headers.append(("headwater-delay-id", sender_id))
            else:
                headers.append(("headwater-delayed-offset", b"orders-0@%d" % self._some_offset()))
        elif chance < 0.75:
            if rng.random() < 0.6:
                delay = b"%d" % rng.choice(DELAYS_MS)
                headers.append(("headwater-delay", delay))
            else:
                at_ms = now_ms + rng.choice((-_HOUR_MS, -1, *DELAYS_MS))
                headers.append(("headwater-deliver-at", b"%d" % at_ms))
            sender_id = rng.choice(SENDER_IDS)
            if sender_id:
                headers.append(("headwater-delay-id", sender_id))
            if rng.random() < 0.1:
                headers.append(("headwater-expire-at", b"%d" % (now_ms + rng.choice(DELAYS_MS))))
        return Record(number, now_ms, b"key", value, tuple(headers))

    def end_transaction(self) -> None:
        producer_id = self._rng.choice(list(self._sequences))
        marker = encode_end_transaction_marker(
            self._rng.choice((ControlType.COMMIT, ControlType.COMMIT, ControlType.ABORT)),
            producer_id=producer_id,
            producer_epoch=0,
            coordinator_epoch=0,
            timestamp_ms=self._clock.wall_ms(),
        )
        self.partition.append(
            marker, acks=1, now_ms=self._clock.wall_ms(), origin=AppendOrigin.COORDINATOR
        )
