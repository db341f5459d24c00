"""Batches of transactions in produce requests, with a coordinator that does as the test says."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import TopicPartition
from headwater.broker.topics.coordinator_topics import CoordinatorKind
from headwater.broker.transactions.partitions import TransactionPartitions, Verdicts
from headwater.coordinator.outcome import ProducerIdentity
from headwater.storage.producers.transaction_verification import Question
from headwater.wire.records import Record, encode_batch
from tests.support.brokers.running_broker import RunningBroker, batch_of, run_broker_scenario
from tests.support.fakes.peers.broker import until
from tests.support.traffic.transactional_client import (
    Partition,
    TransactionalProducer,
    marker_codes,
    marker_request,
    produce_codes,
    read_committed,
)

_A0, _A1 = ("orders", 0), ("orders", 1)


class _Coordinator:
    """Stands for `TransactionPartitions`: answers when the gate is open."""

    def __init__(self, broker: RunningBroker) -> None:
        self.asked: list[tuple[str, ProducerIdentity, list[TopicPartition], bool]] = []
        self.codes: Mapping[Partition, ErrorCode] = {}
        self.gate = asyncio.Event()
        self.gate.set()
        self.is_asked_again = False
        broker.server.context.transaction_partitions = cast(TransactionPartitions, self)

    async def ensure(
        self,
        transactional_id: str,
        producer: ProducerIdentity,
        partitions: Sequence[TopicPartition],
        *,
        add: bool,
        questions: Sequence[Question],
    ) -> Verdicts:
        self.asked.append((transactional_id, producer, list(partitions), add))
        await self.gate.wait()
        if self.is_asked_again:
            for question in questions:
                question.renew()
        return {
            each: KafkaError(self.codes[each]) if each in self.codes else None
            for each in partitions
        }


def _producer(broker: RunningBroker, version: int = 2, epoch: int = 0) -> TransactionalProducer:
    producer = TransactionalProducer(broker.channel, "pay", version)
    producer.producer_id, producer.epoch = 7, epoch
    producer.version = 2  # It does not add partitions by itself here; only Produce differs.
    producer.produce_version = 12 if version == 2 else 11
    return producer


def _run(
    directory: Path,
    scenario: Callable[[RunningBroker, _Coordinator], Any],
    settings: Mapping[str, str] | None = None,
) -> None:
    async def run(broker: RunningBroker) -> None:
        await broker.create_topic("orders", partitions=2)
        await scenario(broker, _Coordinator(broker))

    run_broker_scenario(directory, run, settings)


@pytest.mark.parametrize("version", [1, 2])
def test_the_coordinator_is_asked_once_for_a_requests_partitions(
    tmp_path: Path, version: int
) -> None:
    async def scenario(broker: RunningBroker, coordinator: _Coordinator) -> None:
        producer = _producer(broker, version)
        for _ in range(3):
            codes = await producer.produce(_A0, _A1, values=[b"x"], timestamp_ms=broker.now_ms)
            assert codes == [ErrorCode.NONE, ErrorCode.NONE]
        assert coordinator.asked == [
            (
                "pay",
                ProducerIdentity(7, 0),
                [TopicPartition(*_A0), TopicPartition(*_A1)],
                version == 2,
            )
        ]
        assert await broker.values("orders") == [b"x", b"x", b"x"]
        assert await read_committed(broker.channel, _A0) == []

    _run(tmp_path, scenario)


def test_a_partition_that_is_not_part_of_the_transaction_gets_nothing(tmp_path: Path) -> None:
    async def scenario(broker: RunningBroker, coordinator: _Coordinator) -> None:
        producer = _producer(broker, version=1)
        coordinator.codes = {_A1: ErrorCode.TRANSACTION_ABORTABLE}
        codes = await producer.produce(_A0, _A1, values=[b"x"], timestamp_ms=broker.now_ms)
        assert codes == [ErrorCode.NONE, ErrorCode.TRANSACTION_ABORTABLE]
        producer.produce_version = 9
        codes = await producer.produce(_A1, values=[b"x"], timestamp_ms=broker.now_ms)
        assert codes == [ErrorCode.INVALID_TXN_STATE]
        coordinator.codes = {_A1: ErrorCode.NETWORK_EXCEPTION}
        codes = await producer.produce(_A1, values=[b"x"], timestamp_ms=broker.now_ms)
        assert codes == [ErrorCode.NOT_ENOUGH_REPLICAS]
        assert await broker.values("orders", partition=1) == []
        assert await broker.values("orders", partition=0) == [b"x"]

    _run(tmp_path, scenario)


def test_a_transactional_batch_needs_a_transactional_id(tmp_path: Path) -> None:
    async def scenario(broker: RunningBroker, coordinator: _Coordinator) -> None:
        batch = batch_of(
            [b"x"],
            broker.now_ms,
            producer_id=7,
            producer_epoch=0,
            base_sequence=0,
            transactional=True,
        )
        answer = await broker.produce_batch("orders", batch)
        assert answer.error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        assert coordinator.asked == []

    _run(tmp_path, scenario)


def test_later_batches_wait_and_keep_their_order(tmp_path: Path) -> None:
    async def scenario(broker: RunningBroker, coordinator: _Coordinator) -> None:
        coordinator.gate.clear()
        producer = _producer(broker)
        pending = [
            broker.channel.send_nowait(
                producer.request({_A0: producer.batch(_A0, [b"%d" % number], broker.now_ms)}),
                version=12,
            )
            for number in range(5)
        ]
        other = await broker.connect()  # Answers on one connection wait for each other.
        plain = TransactionalProducer(other, "plain")
        await until(lambda: coordinator.asked)
        answer = await broker_produce(plain, broker)
        assert answer == [ErrorCode.NONE]
        coordinator.gate.set()
        for each in pending:
            assert produce_codes(await each) == [ErrorCode.NONE]
        assert await broker.values("orders") == [b"plain", b"0", b"1", b"2", b"3", b"4"]
        assert len(coordinator.asked) == 1
        partition = broker.server.context.partitions.get(*_A0)
        assert not partition.transaction_turns.is_busy(7)
        await other.close()

    async def broker_produce(
        plain: TransactionalProducer, broker: RunningBroker
    ) -> list[ErrorCode]:
        request = plain.request({_A0: batch_of([b"plain"], broker.now_ms)})
        request.transactional_id = None
        return produce_codes(await plain.channel.send(request, version=12, timeout_s=10))

    _run(tmp_path, scenario)


def test_a_batch_does_not_overtake_one_that_failed_for_now(tmp_path: Path) -> None:
    async def scenario(broker: RunningBroker, coordinator: _Coordinator) -> None:
        coordinator.gate.clear()
        coordinator.codes = {_A0: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}
        producer = _producer(broker, version=1)
        batches = [producer.batch(_A0, [b"%d" % number], broker.now_ms) for number in range(2)]
        pending = [
            broker.channel.send_nowait(producer.request({_A0: batch}), version=11)
            for batch in batches
        ]
        await until(lambda: coordinator.asked)
        coordinator.gate.set()
        assert produce_codes(await pending[0]) == [ErrorCode.NOT_ENOUGH_REPLICAS]
        assert produce_codes(await pending[1]) == [ErrorCode.NOT_ENOUGH_REPLICAS]
        coordinator.codes = {}
        assert await producer.send_batches({_A0: batches[1]}) == [
            ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        ]
        for batch in batches:
            assert await producer.send_batches({_A0: batch}) == [ErrorCode.NONE]
        assert await broker.values("orders") == [b"0", b"1"]

    _run(tmp_path, scenario)


@pytest.mark.parametrize("marker_epoch", [0, 1])
def test_a_batch_that_was_verified_before_the_abort_is_refused_after_it(
    tmp_path: Path, marker_epoch: int
) -> None:
    """Or it would begin a transaction of which no coordinator knows."""

    async def scenario(broker: RunningBroker, coordinator: _Coordinator) -> None:
        coordinator.gate.clear()
        producer = _producer(broker, version=1)
        batch = producer.batch(_A0, [b"late"], broker.now_ms)
        pending = broker.channel.send_nowait(producer.request({_A0: batch}), version=11)
        await until(lambda: coordinator.asked)
        other = await broker.connect_as_broker()
        markers = marker_request(7, marker_epoch, _A0, commit=False)
        answer = await other.send(markers, timeout_s=10)
        assert marker_codes(answer) == [ErrorCode.NONE]
        coordinator.gate.set()
        assert produce_codes(await pending) == [ErrorCode.INVALID_TXN_STATE]
        partition = broker.server.context.partitions.get(*_A0)
        assert partition.log_end_offset == partition.last_stable_offset == 1
        await other.close()

    _run(tmp_path, scenario)


def test_the_end_of_the_last_transaction_does_not_count_against_the_next(tmp_path: Path) -> None:
    """The coordinator makes the next one wait until that is written, and is asked again then."""

    async def scenario(broker: RunningBroker, coordinator: _Coordinator) -> None:
        producer = _producer(broker)
        await producer.produce(_A0, values=[b"a"], timestamp_ms=broker.now_ms)
        producer.epoch = 1
        coordinator.gate.clear()
        coordinator.is_asked_again = True
        batch = encode_batch(
            [Record(0, broker.now_ms, b"k", b"b")],
            base_offset=0,
            producer_id=7,
            producer_epoch=1,
            base_sequence=0,
            transactional=True,
        )
        pending = broker.channel.send_nowait(producer.request({_A0: batch}), version=12)
        await until(lambda: len(coordinator.asked) == 2)
        other = await broker.connect_as_broker()
        answer = await other.send(marker_request(7, 1, _A0), timeout_s=10)
        assert marker_codes(answer) == [ErrorCode.NONE]
        coordinator.gate.set()
        assert produce_codes(await pending) == [ErrorCode.NONE]
        assert await read_committed(broker.channel, _A0) == [b"a"]
        await other.close()

    _run(tmp_path, scenario)


def test_another_epoch_makes_a_verification_void(tmp_path: Path) -> None:
    async def scenario(broker: RunningBroker, coordinator: _Coordinator) -> None:
        coordinator.gate.clear()
        old, new = _producer(broker), _producer(broker, epoch=1)
        new.channel = await broker.connect()
        late = broker.channel.send_nowait(
            old.request({_A0: old.batch(_A0, [b"old"], broker.now_ms)}), version=12
        )
        await until(lambda: len(coordinator.asked) == 1)
        fresh = new.channel.send_nowait(
            new.request({_A0: new.batch(_A0, [b"new"], broker.now_ms)}), version=12
        )
        coordinator.gate.set()
        # The newer one waits for its turn, so this one was in time.
        assert produce_codes(await late) == [ErrorCode.NONE]
        assert produce_codes(await fresh) == [ErrorCode.NONE]
        zombie = old.batch(_A0, [b"zombie"], broker.now_ms)
        assert await old.send_batches({_A0: zombie}) == [ErrorCode.INVALID_PRODUCER_EPOCH]
        await new.channel.close()

    _run(tmp_path, scenario)


def test_the_second_version_begins_at_zero(tmp_path: Path) -> None:
    async def scenario(broker: RunningBroker, coordinator: _Coordinator) -> None:
        del coordinator
        for version, expected in ((2, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER), (1, ErrorCode.NONE)):
            producer = _producer(broker, version)
            producer.batch(_A0, [b"lost"], broker.now_ms)
            batch = producer.batch(_A0, [b"x"], broker.now_ms)
            assert await producer.send_batches({_A0: batch}) == [expected]

    _run(tmp_path, scenario)


def test_verification_can_be_turned_off_for_the_first_version(tmp_path: Path) -> None:
    async def scenario(broker: RunningBroker, coordinator: _Coordinator) -> None:
        codes = await _producer(broker, 1).produce(_A0, values=[b"x"], timestamp_ms=broker.now_ms)
        assert codes == [ErrorCode.NONE]
        assert coordinator.asked == []
        codes = await _producer(broker, 2).produce(_A1, values=[b"x"], timestamp_ms=broker.now_ms)
        assert codes == [ErrorCode.NONE]
        assert len(coordinator.asked) == 1

    _run(tmp_path, scenario, {"transaction.partition.verification.enable": "false"})


def test_a_request_has_one_producer(tmp_path: Path) -> None:
    async def scenario(broker: RunningBroker, coordinator: _Coordinator) -> None:
        del coordinator
        first, second = _producer(broker), _producer(broker)
        second.producer_id = 8
        batches = {
            _A0: first.batch(_A0, [b"x"], broker.now_ms),
            _A1: second.batch(_A1, [b"x"], broker.now_ms),
        }
        codes = await first.send_batches(batches)
        assert codes[1] is ErrorCode.INVALID_PRODUCER_ID_MAPPING

    _run(tmp_path, scenario)


def test_transactions_of_a_compacted_topic_are_looked_into(tmp_path: Path) -> None:
    """Verification and the look into records both take time, and neither breaks the order."""

    async def scenario(broker: RunningBroker, coordinator: _Coordinator) -> None:
        await broker.create_topic("compacted", configs={"cleanup.policy": "compact"})
        partition = ("compacted", 0)
        producer = _producer(broker)
        coordinator.gate.clear()
        values = [b"%d" % number * 20_000 for number in range(4)]
        pending = [
            broker.channel.send_nowait(
                producer.request({partition: producer.batch(partition, [value], broker.now_ms)}),
                version=12,
            )
            for value in values
        ]
        await until(lambda: coordinator.asked)
        coordinator.gate.set()
        for each in pending:
            assert produce_codes(await each) == [ErrorCode.NONE]
        assert await broker.values("compacted") == values

    _run(tmp_path, scenario)


def test_clients_do_not_write_to_internal_topics(tmp_path: Path) -> None:
    async def scenario(broker: RunningBroker, coordinator: _Coordinator) -> None:
        del coordinator
        await broker.server.context.coordinator_topics.ensure(CoordinatorKind.GROUP)
        batch = batch_of([b"x"], broker.now_ms)
        answer = await broker.produce_batch("__consumer_offsets", batch)
        assert answer.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
        assert broker.server.context.partitions.get("__consumer_offsets", 0).log_end_offset == 0

    _run(tmp_path, scenario)
