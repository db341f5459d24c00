"""Two brokers and the network to them, played for sans-io machines, with faults from a generator.

Requests over one connection are served in order. A cut loses the answers that are on their way; of
the requests that were not served yet, some are lost, and some are served later nevertheless, out of
the old connection's buffers. Faults come until their number is used up, so that everything ends.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from headwater.base.errors import ErrorCode
from headwater.base.ids import TopicPartition
from headwater.client.machines.ask import Ask, CoordinatorOf, Machine
from headwater.net.peer_errors import PeerUnavailableError
from headwater.wire.messages.init_producer_id import InitProducerIdRequest
from headwater.wire.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from headwater.wire.messages.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from headwater.wire.records import read_batch_header
from tests.support.fakes.coordinator import FakeCoordinator
from tests.support.fakes.partition import FakePartition

TOPIC = "orders"
BROKER_COUNT = 2
COORDINATOR_ID = 0
#: From this version of Produce on a partition joins the transaction with its first batch.
JOINS_SINCE = 12

#: Errors with which a leader answers before it has looked at a batch, and after it wrote it.
REFUSED_BEFORE = (
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.REQUEST_TIMED_OUT,
)
REFUSED_AFTER = (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND)
BUSY = (
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.CONCURRENT_TRANSACTIONS,
)


@dataclass(eq=False)
class Flight:
    """A request under way. What it carries is as it was when it was sent."""

    ask: Ask
    batches: dict[TopicPartition, bytes]
    answer: Any = None


class FakeClusterWithFaults:
    def __init__(
        self,
        generator: random.Random,
        *,
        is_version_2: bool = True,
        fault_count: int = 0,
        final_errors: Sequence[ErrorCode] = (),
        may_be_late: bool = True,
    ) -> None:
        self.now_s = 0.0
        self.partitions = {TopicPartition(TOPIC, n): FakePartition() for n in range(2)}
        self.coordinator = FakeCoordinator(self.partitions, is_version_2=is_version_2)
        self.fault_count = fault_count
        #: Errors for a batch that sending it again does not help.
        self.final_errors = final_errors
        #: Whether a request of a lost connection may be served after those of the next one.
        self._is_ever_late = may_be_late
        #: The classes of what was sent.
        self.sent: list[str] = []
        self._generator = generator
        self._connections: dict[int, list[Flight]] = {n: [] for n in range(BROKER_COUNT)}
        #: What a broker may yet read out of a connection that is gone.
        self._remains: list[Flight] = []

    def run(
        self, machines: Sequence[Machine], *, until: Callable[[], bool], step_limit: int = 20_000
    ) -> None:
        """Let machines and cluster act until a condition holds."""
        for _ in range(step_limit):
            if until():
                return
            for machine in machines:
                for ask in machine.asks(self.now_s):
                    self._send(ask)
            if until():
                return
            self._act(machines)
        raise AssertionError("the machines did not come to an end")

    def _send(self, ask: Ask) -> None:
        self.sent.append(type(ask.request).__name__)
        batches: dict[TopicPartition, bytes] = {}
        if isinstance(ask.request, ProduceRequest):
            for topic in ask.request.topic_data:
                for each in topic.partition_data:
                    assert isinstance(each.records, tuple)
                    batches[TopicPartition(topic.name, each.index)] = b"".join(each.records)
        broker_id = ask.target if isinstance(ask.target, int) else COORDINATOR_ID
        self._connections[broker_id].append(Flight(ask, batches))

    # -- the network -----------------------------------------------------------------------------

    def _act(self, machines: Sequence[Machine]) -> None:
        busy = [broker_id for broker_id, flights in self._connections.items() if flights]
        if self._remains and self._generator.random() < 0.2:
            self._serve(self._remains.pop(0))
            return
        if not busy or self._generator.random() < 0.1:
            self._let_time_pass(machines, is_idle=not busy)
            return
        broker_id = self._generator.choice(busy)
        flights = self._connections[broker_id]
        if self._is_faulty(0.08):
            self._cut(broker_id)
            return
        unserved = [flight for flight in flights if flight.answer is None]
        if unserved and (len(unserved) == len(flights) or self._generator.random() < 0.6):
            unserved[0].answer = self._serve(unserved[0])
        else:
            flight = flights.pop(0)
            self.now_s += 0.001
            flight.ask.on_answer(flight.answer, self.now_s)

    def _let_time_pass(self, machines: Sequence[Machine], *, is_idle: bool) -> None:
        times_s = [machine.wake_at_s(self.now_s) for machine in machines]
        wake_s = min((at_s for at_s in times_s if at_s is not None), default=None)
        if is_idle:
            assert wake_s is not None or self._remains, "everybody waits for somebody else"
            self.now_s = max(self.now_s, wake_s or 0.0)
        else:
            self.now_s += self._generator.choice((0.001, 0.05, 0.5))

    def _is_faulty(self, chance: float) -> bool:
        is_faulty = self.fault_count > 0 and self._generator.random() < chance
        self.fault_count -= is_faulty
        return is_faulty

    def _cut(self, broker_id: int) -> None:
        flights, self._connections[broker_id] = self._connections[broker_id], []
        read_count = self._generator.randint(0, len(flights))
        for flight in flights[:read_count]:
            if flight.answer is not None:
                continue
            if self._may_be_late(flight):
                self._remains.append(flight)
            else:
                self._serve(flight)
        self.now_s += 0.001
        for flight in flights:
            error = PeerUnavailableError("The connection was cut.")
            flight.ask.on_failure(error, self.now_s)

    def _may_be_late(self, flight: Flight) -> bool:
        """Whether the protocol bears that a request is served long after it was sent.

        In the first version a coordinator cannot tell a late request from a new one, which is why
        there is a second one. Nor can it ever tell a late first one from that of a new instance.
        """
        if not self._is_ever_late:
            return False
        if isinstance(flight.ask.request, InitProducerIdRequest):
            return flight.ask.request.producer_id != -1
        return self.coordinator.is_version_2 or bool(flight.batches)

    # -- the brokers -----------------------------------------------------------------------------

    def _serve(self, flight: Flight) -> Any:
        request = flight.ask.request
        if isinstance(request, MetadataRequest):
            return _metadata()
        if isinstance(request, ProduceRequest):
            version_max = flight.ask.version_max
            joins = version_max is None or version_max >= JOINS_SINCE
            return self._produce(flight.batches, joins=joins)
        is_plain = not isinstance(flight.ask.target, CoordinatorOf)
        if not is_plain and self._is_faulty(0.2):
            return self.coordinator.refusal(request, self._generator.choice(BUSY))
        return self.coordinator.answer(request)

    def _produce(self, batches: dict[TopicPartition, bytes], *, joins: bool) -> ProduceResponse:
        answers = []
        for topic_partition, data in batches.items():
            code, offset = self._write(topic_partition, data, joins=joins)
            answers.append(
                PartitionProduceResponse(
                    index=topic_partition.partition, error_code=code, base_offset=offset
                )
            )
        return ProduceResponse(
            responses=[TopicProduceResponse(name=TOPIC, partition_responses=answers)]
        )

    def _write(
        self, topic_partition: TopicPartition, data: bytes, *, joins: bool
    ) -> tuple[ErrorCode, int]:
        if self._is_faulty(0.1):
            return self._generator.choice((*REFUSED_BEFORE, *self.final_errors)), -1
        header = read_batch_header(memoryview(data), 0)
        if header.is_transactional:
            code = self.coordinator.admit(topic_partition, header.producer_epoch, joins=joins)
            if code:
                return code, -1
        code, offset = self.partitions[topic_partition].append(data)
        if code is ErrorCode.NONE and self._is_faulty(0.1):
            return self._generator.choice(REFUSED_AFTER), -1
        return code, offset


def _metadata() -> MetadataResponse:
    return MetadataResponse(
        brokers=[
            MetadataResponseBroker(node_id=n, host="127.0.0.1", port=9000 + n)
            for n in range(BROKER_COUNT)
        ],
        cluster_id="played",
        controller_id=0,
        topics=[
            MetadataResponseTopic(
                name=TOPIC,
                partitions=[
                    MetadataResponsePartition(partition_index=n, leader_id=n)
                    for n in range(BROKER_COUNT)
                ],
            )
        ],
    )
