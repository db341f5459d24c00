"""A broker in this process whose delayed messages are a stand-in's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple, cast

from headwater.delay.delays import Delays
from headwater.testing import broker
from headwater.testing.running_broker import RunningBroker
from tests.support.fakes.delays import FakeDelays


class DelayingBroker(NamedTuple):
    broker: RunningBroker
    delays: FakeDelays

    @property
    def bootstrap(self) -> str:
        return self.broker.bootstrap


@contextmanager
def delaying_broker() -> Iterator[DelayingBroker]:
    """With a topic `orders` of two partitions, in which three messages wait."""
    delays = FakeDelays()
    with broker(settings={"auto.create.topics.enable": "false"}) as running:
        running._serving().context.delays = cast(Delays, delays)
        running.create_topic("orders", partitions=2)
        running.create_topic("payments")
        refill(delays)
        yield DelayingBroker(running, delays)


def refill(delays: FakeDelays) -> None:
    """What waits to begin with."""
    delays.partitions.clear()
    delays.at("orders", 0).add(3, due_ms=3000, sender_id=b"mine", key=b"k")
    delays.at("orders", 0).add(4, due_ms=2000)
    delays.at("orders", 1).add(0, due_ms=2500, sender_id=b"mine")
