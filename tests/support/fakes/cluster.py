"""A cluster that a test plays for a producer's machines: no sockets, no loop, no clock.

It keeps one log for each partition and checks sequence numbers as brokers do. Requests that were
asked for lie in the order of their connection until the test lets a broker take the next one, cuts
the connection, or lets an old request arrive after all.
"""

import random
import uuid
from collections import defaultdict, deque
from typing import NamedTuple

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import TopicPartition
from headwater.client.connection.cluster_metadata import ClusterMetadata
from headwater.client.connection.coordinator_cache import CoordinatorCache
from headwater.client.connection.metadata_upkeep import MetadataUpkeep
from headwater.client.connection.retry import RetryPolicy
from headwater.client.machines.ask import Ask, Machine
from headwater.client.producer.batches.accumulator import RecordAccumulator
from headwater.client.producer.batches.delivery_future import DeliveryFuture
from headwater.client.producer.intake.serialized_record import (
    RECORD_OVERHEAD_BYTES,
    SerializedRecord,
)
from headwater.client.producer.metrics import ProducerMetrics
from headwater.client.producer.record_metadata import OnDelivery
from headwater.client.producer.sending.sender import Sender, SenderSettings
from headwater.client.producer.transactions.manager import TransactionManager
from headwater.client.settings.producer_settings import PRODUCER_SETTINGS
from headwater.net.peer_errors import PeerUnavailableError
from headwater.wire.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
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
from headwater.wire.records import Compression, decode_records, read_batch_header

TOPIC = "orders"
TOPIC_ID = uuid.UUID(int=7)
REMEMBERED_BATCHES = 5


class Numbered(NamedTuple):
    """A batch that a log remembers by its numbers."""

    first: int
    last: int
    base_offset: int


class FakeLog:
    """What a partition holds, and what it remembers of its producers."""

    def __init__(self) -> None:
        self.values: list[bytes] = []
        self.record_count_max = 1 << 30
        self._epochs: dict[int, int] = {}
        self._remembered: defaultdict[int, deque[Numbered]] = defaultdict(
            lambda: deque(maxlen=REMEMBERED_BATCHES)
        )

    def append(self, data: bytes) -> tuple[ErrorCode, int]:
        """What a leader would answer."""
        header = read_batch_header(data, 0)
        values = [record.value or b"" for record in decode_records(data)]
        if len(values) > self.record_count_max:
            return ErrorCode.MESSAGE_TOO_LARGE, -1
        if header.producer_id >= 0:
            code, offset = self._check(
                header.producer_id, header.producer_epoch, header.base_sequence, len(values)
            )
            if code is not ErrorCode.NONE or offset >= 0:
                return code, offset
        offset = len(self.values)
        self.values += values
        if header.producer_id >= 0:
            first = header.base_sequence
            self._remembered[header.producer_id].append(
                Numbered(first, first + len(values) - 1, offset)
            )
        return ErrorCode.NONE, offset

    def _check(self, producer_id: int, epoch: int, first: int, count: int) -> tuple[ErrorCode, int]:
        known_epoch = self._epochs.get(producer_id)
        remembered = self._remembered[producer_id]
        if known_epoch is not None and epoch < known_epoch:
            return ErrorCode.INVALID_PRODUCER_EPOCH, -1
        if known_epoch is None or epoch > known_epoch:
            # A leader that knows nothing of a producer takes any number from it, as Kafka's does.
            if first != 0 and known_epoch is not None:
                return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1
            self._epochs[producer_id] = epoch
            remembered.clear()
            return ErrorCode.NONE, -1
        for batch in remembered:
            if (batch.first, batch.last) == (first, first + count - 1):
                return ErrorCode.NONE, batch.base_offset
        expected = remembered[-1].last + 1 if remembered else 0
        if first != expected:
            return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1
        return ErrorCode.NONE, -1


class FakeCluster:
    """Two brokers, one topic, and the machines of one producer."""

    def __init__(
        self,
        *,
        partition_count: int = 2,
        is_idempotent: bool = True,
        acks: int = -1,
        in_flight_max: int = 5,
        retries: int = 2**31 - 1,
        linger_s: float = 0.005,
        batch_size_bytes: int = 300,
        buffer_bytes: int = 1 << 20,
        request_bytes_max: int = 1 << 20,
        delivery_timeout_s: float = 10.0,
        compression: Compression = Compression.NONE,
        has_topic_ids: bool = True,
    ) -> None:
        self.now_s = 1.0
        self.logs = [FakeLog() for _ in range(partition_count)]
        self.leaders = [number % 2 for number in range(partition_count)]
        self.is_acknowledged = acks != 0
        self.has_topic_ids = has_topic_ids
        self.fatal_errors: list[KafkaError] = []
        #: Requests for each broker, None for any, in the order of their connection.
        self.wire: defaultdict[int | None, deque[Ask]] = defaultdict(deque)
        #: Requests whose connection was cut before the broker had them.
        self.strays: list[tuple[int, ProduceRequest]] = []
        self.requests: list[tuple[int, Ask]] = []
        self.throttle_time_ms = 0
        self._next_producer_id = 100
        generator = random.Random(1)
        policy = RetryPolicy(backoff_ms=100, backoff_max_ms=1000)
        self.metadata = ClusterMetadata()
        self.upkeep = MetadataUpkeep(
            self.metadata,
            max_age_s=300.0,
            policy=policy,
            generator=generator,
            allow_auto_creation=True,
        )
        self.upkeep.add_topics([TOPIC])
        self.accumulator = RecordAccumulator(
            batch_size_bytes=batch_size_bytes,
            linger_s=linger_s,
            buffer_bytes=buffer_bytes,
            delivery_timeout_s=delivery_timeout_s,
        )
        self.manager: TransactionManager | None = None
        if is_idempotent:
            self.manager = TransactionManager(
                PRODUCER_SETTINGS.defaults(),
                coordinators=CoordinatorCache(),
                policy=policy,
                generator=generator,
                api_versions=lambda: None,
            )
        self.metrics = ProducerMetrics(self.now_s)
        self.sender = Sender(
            SenderSettings(
                acks=acks,
                request_timeout_ms=1000,
                delivery_timeout_s=delivery_timeout_s,
                request_bytes_max=request_bytes_max,
                in_flight_max=in_flight_max,
                retries=retries,
                compression=compression,
                compression_level=None,
            ),
            self.accumulator,
            self.metadata,
            self.upkeep,
            self.manager,
            policy=policy,
            generator=generator,
            metrics=self.metrics,
            on_fatal=self.fatal_errors.append,
        )
        self._machines: list[Machine] = [self.upkeep, self.sender]
        if self.manager is not None:
            self.manager.is_flushed = lambda: self.accumulator.is_empty
            self.manager.on_abort = self.sender.fail_waiting
            self._machines.insert(1, self.manager)

    # -- time ------------------------------------------------------------------------------------

    def step(self) -> None:
        """Ask the machines; what is not about records is answered at once."""
        for _ in range(10):
            asks = [ask for machine in self._machines for ask in machine.asks(self.now_s)]
            if not asks:
                return
            for ask in asks:
                self._place(ask)
        raise AssertionError("the machines never stop asking")

    def advance(self, duration_s: float) -> None:
        """Let time pass, with a step whenever a machine wants one."""
        end_s = self.now_s + duration_s
        while True:
            self.step()
            wishes = [machine.wake_at_s(self.now_s) for machine in self._machines]
            next_s = min((wish for wish in wishes if wish is not None), default=end_s)
            if next_s >= end_s:
                break
            # A machine that wants to be woken in the past would spin.
            self.now_s = max(next_s, self.now_s + 0.001)
        self.now_s = end_s
        self.step()

    def _place(self, ask: Ask) -> None:
        if isinstance(ask.request, MetadataRequest):
            ask.on_answer(self._metadata(), self.now_s)
        elif isinstance(ask.request, InitProducerIdRequest):
            self._next_producer_id += 1
            ask.on_answer(
                InitProducerIdResponse(producer_id=self._next_producer_id, producer_epoch=0),
                self.now_s,
            )
        else:
            assert isinstance(ask.target, int)
            self.requests.append((ask.target, ask))
            self.wire[ask.target].append(ask)

    # -- what brokers do -------------------------------------------------------------------------

    def answer(self, broker_id: int, code: ErrorCode = ErrorCode.NONE) -> None:
        """The broker takes its next request; with an error code it refuses all of it."""
        ask = self.wire[broker_id].popleft()
        assert isinstance(ask.request, ProduceRequest)
        if ask.is_answered:
            ask.on_answer(self._apply(broker_id, ask.request, code), self.now_s)
        else:
            self._apply(broker_id, ask.request, code)
            ask.on_answer(None, self.now_s)

    def cut(self, broker_id: int, applied_count: int = 0) -> None:
        """The connection is lost after the broker took that many of the requests on it."""
        lost, self.wire[broker_id] = self.wire[broker_id], deque()
        for index, ask in enumerate(lost):
            assert isinstance(ask.request, ProduceRequest)
            if index < applied_count:
                self._apply(broker_id, ask.request, ErrorCode.NONE)
            else:
                self.strays.append((broker_id, ask.request))
        for ask in lost:
            ask.on_failure(PeerUnavailableError("The connection was cut."), self.now_s)

    def deliver_stray(self, index: int) -> None:
        """A request arrives long after its sender gave up the connection."""
        broker_id, request = self.strays.pop(index)
        self._apply(broker_id, request, ErrorCode.NONE)

    def settle(self) -> None:
        """Let brokers answer everything, until nothing is left to be done."""
        for _ in range(10_000):
            self.step()
            for broker_id in (0, 1):
                if self.wire[broker_id]:
                    self.answer(broker_id)
            if self.accumulator.is_empty and not any(self.wire.values()):
                return
            if not any(self.wire.values()):
                self.advance(0.01)
        raise AssertionError("records are left over")

    def _apply(self, broker_id: int, request: ProduceRequest, code: ErrorCode) -> ProduceResponse:
        response = ProduceResponse(throttle_time_ms=self.throttle_time_ms)
        for topic in request.topic_data:
            answers = TopicProduceResponse(name=topic.name, topic_id=topic.topic_id)
            for partition in topic.partition_data:
                answer = PartitionProduceResponse(index=partition.index, base_offset=-1)
                if code is not ErrorCode.NONE:
                    answer.error_code = code
                elif self.leaders[partition.index] != broker_id:
                    answer.error_code = ErrorCode.NOT_LEADER_OR_FOLLOWER
                else:
                    assert isinstance(partition.records, tuple)
                    outcome = self.logs[partition.index].append(b"".join(partition.records))
                    answer.error_code, answer.base_offset = outcome
                answers.partition_responses.append(answer)
            response.responses.append(answers)
        return response

    def _metadata(self) -> MetadataResponse:
        return MetadataResponse(
            brokers=[
                MetadataResponseBroker(node_id=number, host="host", port=9092 + number)
                for number in (0, 1)
            ],
            topics=[
                MetadataResponseTopic(
                    name=TOPIC,
                    topic_id=TOPIC_ID if self.has_topic_ids else uuid.UUID(int=0),
                    partitions=[
                        MetadataResponsePartition(partition_index=number, leader_id=leader)
                        for number, leader in enumerate(self.leaders)
                    ],
                )
            ],
        )

    # -- what callers do -------------------------------------------------------------------------

    def send(
        self,
        value: bytes,
        partition: int = 0,
        on_delivery: OnDelivery | None = None,
        timestamp_ms: int = 5,
    ) -> DeliveryFuture:
        """Put a record into the accumulator, which must have room."""
        queue = self.accumulator.queue(TopicPartition(TOPIC, partition))
        record = SerializedRecord(
            timestamp_ms, None, value, (), RECORD_OVERHEAD_BYTES + len(value), on_delivery
        )
        future = self.accumulator.append(queue, record)
        future = future or self.accumulator.append_to_new(queue, record, self.now_s)
        assert future is not None
        return future
