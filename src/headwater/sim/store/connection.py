"""A connection between a broker and the simulated metadata store: two queues of messages.

A message is something to be called at the other end. Messages of one direction arrive in their
order, each after a delay of the network's, and wait while the network is cut between the host and
the store. A connection that breaks brings nothing more; either end gives it up in its own time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final, NamedTuple

from headwater.sim.network.network import SimulatedNetwork
from headwater.sim.process import SimulatedProcess

#: The name of the store among the hosts of the network.
STORE_HOST: Final = "store"
#: How often a message that is held back by a partition tries again.
_RETRY_S: Final = 0.05


class Message(NamedTuple):
    """What happens when it arrives; events are kept for the next connection if it does not."""

    arrive: Callable[[], None]
    is_event: bool = False


class StoreConnection:
    def __init__(self, network: SimulatedNetwork, process: SimulatedProcess) -> None:
        self.process = process
        #: Nothing arrives any more, at either end.
        self.is_broken = False
        self._network = network
        self._to_store: deque[Message] = deque()
        self._to_client: deque[Message] = deque()

    def send_to_store(self, message: Message) -> None:
        if self._survives():
            self._to_store.append(message)
            self._network.soon(self._network.delay_s(), self._arrive_at_store)

    def send_to_client(self, message: Message) -> None:
        if self._survives() or message.is_event:
            self._to_client.append(message)
            self._network.soon(self._network.delay_s(), self._arrive_at_client)

    def undelivered_events(self) -> list[Message]:
        """Break for good, and hand over what the client must hear of on its next connection."""
        self.is_broken = True
        return [message for message in self._to_client if message.is_event]

    def _survives(self) -> bool:
        network = self._network
        if network.random.random() < network.conditions.loss_probability:
            network.trace.note("store", f"the connection of {self.process.host} breaks")
            self.is_broken = True
        return not self.is_broken

    def _arrive_at_store(self) -> None:
        if self.is_broken or not self._to_store:
            return
        if self._network.is_cut(self.process.host, STORE_HOST):
            self._network.soon(_RETRY_S, self._arrive_at_store)
            return
        self._to_store.popleft().arrive()

    def _arrive_at_client(self) -> None:
        if self.is_broken or not self._to_client:
            return
        if self._network.is_cut(STORE_HOST, self.process.host):
            self._network.soon(_RETRY_S, self._arrive_at_client)
            return
        message = self._to_client.popleft()
        self.process.deliver(lambda: self.process.run(message.arrive))
