"""Brokers that have just gone, which Metadata names for two seconds longer.

librdkafka ends its thread for a broker with the first answer that does not name it. If the same
answer brings the new leader of a partition, which after the death of a broker it does, the end of
the old thread undoes the move to the new leader: the partition belongs to nobody until a timer
looks again, a second later. Where the old broker is still named the move goes through at once, so
producers and consumers come back a second earlier. Apache Kafka drops the broker at once.

A departed broker leads nothing, so all that others may do is to try to reach it in vain, as they
did while its session lasted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from headwater.base.clocks import Clock
from headwater.cluster.image.change import ImageChange
from headwater.cluster.image.image import BrokerInfo

#: librdkafka asks for leaders it cannot reach once a second.
NAMED_MS: Final = 2_000


class _Departed(NamedTuple):
    broker: BrokerInfo
    until_ms: float


class DepartedBrokers:
    """A subscriber of the controller; the owner is the broker's event loop."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._present: Mapping[int, BrokerInfo] = {}
        self._departed: dict[int, _Departed] = {}

    async def __call__(self, change: ImageChange) -> None:
        before, self._present = self._present, change.image.brokers
        if before is self._present:
            return
        until_ms = self._clock.monotonic_ms() + NAMED_MS
        for broker_id, broker in before.items():
            if broker_id not in self._present:
                self._departed[broker_id] = _Departed(broker, until_ms)

    def named(self) -> dict[int, BrokerInfo]:
        """Those to be named still, without those that are back."""
        if not self._departed:
            return {}
        now_ms = self._clock.monotonic_ms()
        self._departed = {
            broker_id: departed
            for broker_id, departed in self._departed.items()
            if now_ms < departed.until_ms and broker_id not in self._present
        }
        return {broker_id: departed.broker for broker_id, departed in self._departed.items()}
