"""Whole transactions on a broker: from the producer's id to what readers see."""

import asyncio
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from headwater.base.errors import ErrorCode
from headwater.broker.transactions.markers import MarkerSender
from headwater.coordinator.txn.transaction_metadata import PreparedTransaction
from headwater.wire.messages.describe_producers import (
    DescribeProducersRequest,
    ProducerState,
    TopicRequest,
)
from headwater.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from tests.support.brokers.running_broker import (
    FETCH_VERSION,
    RunningBroker,
    fetch_request,
    run_broker_scenario,
)
from tests.support.fakes.peers.broker import until
from tests.support.tiers import rounds
from tests.support.traffic.transactional_client import (
    TransactionalProducer,
    committed_records,
    fetch_committed,
    marker_codes,
    marker_request,
    read_committed,
)

_A0, _A1 = ("orders", 0), ("orders", 1)
_SETTINGS = {
    "transaction.state.log.num.partitions": "3",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
}
both_versions = pytest.mark.parametrize("version", [1, 2])

Scenario = Callable[[RunningBroker], Awaitable[None]]


def _run(directory: Path, scenario: Scenario) -> None:
    async def run(broker: RunningBroker) -> None:
        async with asyncio.timeout(60):
            await scenario(broker)

    run_broker_scenario(directory, run, _SETTINGS)


async def _start(broker: RunningBroker, name: str, version: int) -> TransactionalProducer:
    producer = TransactionalProducer(await broker.connect(), name, version)
    await producer.init()
    return producer


async def _until_stable(broker: RunningBroker, *partitions: tuple[str, int]) -> None:
    """Markers are written after the producer has its answer."""
    for each in partitions:
        partition = broker.server.context.partitions.get(*each)
        await until(
            lambda partition=partition: partition.last_stable_offset == partition.log_end_offset
        )


async def _producers(broker: RunningBroker, partition: tuple[str, int]) -> list[ProducerState]:
    name, number = partition
    request = DescribeProducersRequest(topics=[TopicRequest(name=name, partition_indexes=[number])])
    answer = (await broker.send(request)).topics[0].partitions[0]
    assert answer.error_code == 0
    producers: list[ProducerState] = answer.active_producers
    return producers


@both_versions
def test_committed_records_appear_together_and_aborted_ones_never(
    tmp_path: Path, version: int
) -> None:
    async def scenario(broker: RunningBroker) -> None:
        await broker.create_topic("orders", partitions=2)
        producer = await _start(broker, "pay", version)
        seen: list[bytes] = []
        for number in range(4):
            value = b"%d" % number
            for part in (b"a", b"b"):
                codes = await producer.produce(
                    _A0, _A1, values=[value + part], timestamp_ms=broker.now_ms
                )
                assert codes == [ErrorCode.NONE, ErrorCode.NONE]
            assert await read_committed(broker.channel, _A0) == seen
            is_commit = number % 2 == 0
            assert await producer.end(commit=is_commit) is ErrorCode.NONE
            await _until_stable(broker, _A0, _A1)
            if is_commit:
                seen += [value + b"a", value + b"b"]
            assert await read_committed(broker.channel, _A0) == seen
            assert await read_committed(broker.channel, _A1) == seen
        uncommitted = await broker.values("orders")
        assert [each for each in uncommitted if len(each) == 2] == [
            b"%d" % number + part for number in range(4) for part in (b"a", b"b")
        ]
        assert producer.epoch == (4 if version == 2 else 0)
        await producer.channel.close()

    _run(tmp_path, scenario)


@both_versions
def test_a_new_instance_fences_the_old_one_and_aborts_its_transaction(
    tmp_path: Path, version: int
) -> None:
    async def scenario(broker: RunningBroker) -> None:
        await broker.create_topic("orders", partitions=2)
        zombie = await _start(broker, "pay", version)
        codes = await zombie.produce(_A0, values=[b"lost"], timestamp_ms=broker.now_ms)
        assert codes == [ErrorCode.NONE]
        successor = await _start(broker, "pay", version)
        await _until_stable(broker, _A0)
        for partition in (_A0, _A1):
            batch = zombie.batch(partition, [b"zombie"], broker.now_ms)
            codes = await zombie.send_batches({partition: batch})
            assert codes == [ErrorCode.INVALID_PRODUCER_EPOCH]
        assert await zombie.end(commit=True) is ErrorCode.PRODUCER_FENCED
        codes = await successor.produce(_A0, values=[b"kept"], timestamp_ms=broker.now_ms)
        assert codes == [ErrorCode.NONE]
        assert await successor.end(commit=True) is ErrorCode.NONE
        await _until_stable(broker, _A0)
        assert await read_committed(broker.channel, _A0) == [b"kept"]
        assert broker.server.context.partitions.get(*_A1).log_end_offset == 0
        for each in (zombie, successor):
            await each.channel.close()

    _run(tmp_path, scenario)


def test_what_was_not_added_to_the_transaction_is_refused(tmp_path: Path) -> None:
    async def scenario(broker: RunningBroker) -> None:
        await broker.create_topic("orders", partitions=2)
        producer = await _start(broker, "pay", 1)
        assert await producer.add(_A0) == [ErrorCode.NONE]
        for version, code in (
            (11, ErrorCode.TRANSACTION_ABORTABLE),
            (10, ErrorCode.INVALID_TXN_STATE),
        ):
            producer.produce_version = version
            batch = producer.batch(_A1, [b"x"], broker.now_ms)
            assert await producer.send_batches({_A1: batch}) == [code]
        batch = producer.batch(_A0, [b"x"], broker.now_ms)
        assert await producer.send_batches({_A0: batch}) == [ErrorCode.NONE]
        assert broker.server.context.partitions.get(*_A1).log_end_offset == 0
        await producer.channel.close()

    _run(tmp_path, scenario)


def test_a_producer_that_no_coordinator_knows_is_refused(tmp_path: Path) -> None:
    async def scenario(broker: RunningBroker) -> None:
        await broker.create_topic("orders", partitions=2)
        known = await _start(broker, "known", 2)
        stranger = TransactionalProducer(known.channel, "stranger")
        stranger.producer_id, stranger.epoch = 4711, 0
        codes = await stranger.produce(_A0, values=[b"x"], timestamp_ms=broker.now_ms)
        assert codes == [ErrorCode.INVALID_PRODUCER_ID_MAPPING]
        await known.channel.close()

    _run(tmp_path, scenario)


def test_a_parked_reader_of_committed_data_wakes_with_the_marker(tmp_path: Path) -> None:
    async def scenario(broker: RunningBroker) -> None:
        await broker.create_topic("orders", partitions=2)
        producer = await _start(broker, "pay", 2)
        await producer.produce(_A0, values=[b"x"], timestamp_ms=broker.now_ms)
        reader = await broker.connect()
        request = fetch_request({_A0: 0}, min_bytes=1, max_wait_ms=50_000, isolation_level=1)
        waiting = reader.send_nowait(request, version=FETCH_VERSION)
        await until(lambda: len(broker.server.context.parked.fetch) == 1)
        await producer.produce(_A0, values=[b"y"], timestamp_ms=broker.now_ms)
        assert not waiting.done()
        assert await producer.end(commit=True) is ErrorCode.NONE
        data = (await waiting).responses[0].partitions[0]
        assert [each.value for each in committed_records(data, 0)[0]] == [b"x", b"y"]
        await reader.close()
        await producer.channel.close()

    _run(tmp_path, scenario)


def test_offsets_of_an_open_transaction_as_clients_are_told(tmp_path: Path) -> None:
    async def scenario(broker: RunningBroker) -> None:
        await broker.create_topic("orders", partitions=2)

        async def latest(isolation_level: int) -> int:
            partition = ListOffsetsPartition(partition_index=0, timestamp=-1)
            topic = ListOffsetsTopic(name="orders", partitions=[partition])
            request = ListOffsetsRequest(
                replica_id=-1, isolation_level=isolation_level, topics=[topic]
            )
            answer = (await broker.send(request)).topics[0].partitions[0]
            assert answer.error_code == 0
            offset: int = answer.offset
            return offset

        await broker.produce("orders", [b"plain"])
        producer = await _start(broker, "pay", 2)
        await producer.produce(_A0, values=[b"x", b"y"], timestamp_ms=broker.now_ms)
        await broker.produce("orders", [b"behind"])
        assert (await latest(0), await latest(1)) == (4, 1)
        data = await fetch_committed(broker.channel, _A0, 0)
        assert (data.high_watermark, data.last_stable_offset) == (4, 1)
        assert data.aborted_transactions == []
        assert await producer.end(commit=False) is ErrorCode.NONE
        await _until_stable(broker, _A0)
        assert (await latest(0), await latest(1)) == (5, 5)
        data = await fetch_committed(broker.channel, _A0, 0)
        assert [
            (each.producer_id, each.first_offset) for each in data.aborted_transactions or ()
        ] == [(producer.producer_id, 1)]
        assert await read_committed(broker.channel, _A0) == [b"plain", b"behind"]
        await producer.channel.close()

    _run(tmp_path, scenario)


def test_a_hanging_transaction_shows_among_the_producers(tmp_path: Path) -> None:
    async def scenario(broker: RunningBroker) -> None:
        await broker.create_topic("orders", partitions=2)
        producer = await _start(broker, "pay", 2)
        await broker.produce("orders", [b"plain"])
        await producer.produce(_A0, values=[b"x", b"y"], timestamp_ms=broker.now_ms)
        (state,) = await _producers(broker, _A0)
        assert (state.producer_id, state.producer_epoch) == (producer.producer_id, producer.epoch)
        assert state.last_sequence == 1
        assert state.current_txn_start_offset == 1
        assert abs(state.last_timestamp - broker.now_ms) < 60_000
        # What an administrator does who wants to end it: write the marker by hand.
        for coordinator_epoch, code in (
            (9, ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
            (0, ErrorCode.NONE),
        ):
            markers = marker_request(
                state.producer_id,
                state.producer_epoch,
                _A0,
                commit=False,
                coordinator_epoch=coordinator_epoch,
            )
            assert marker_codes(await broker.send(markers)) == [code]
        (state,) = await _producers(broker, _A0)
        assert state.current_txn_start_offset == -1
        assert state.coordinator_epoch == 0
        assert await read_committed(broker.channel, _A0) == [b"plain"]
        await producer.channel.close()

    _run(tmp_path, scenario)


@both_versions
@pytest.mark.parametrize("is_kill", [False, True])
@pytest.mark.parametrize("commit", [False, True])
def test_a_broker_that_comes_back_finishes_what_was_decided(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: int, is_kill: bool, commit: bool
) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    held: list[PreparedTransaction] = []

    async def decide(broker: RunningBroker) -> None:
        await broker.create_topic("orders", partitions=2)
        producer = await _start(broker, "pay", version)
        await producer.produce(_A0, _A1, values=[b"x"], timestamp_ms=broker.now_ms)
        assert await producer.end(commit=commit) is ErrorCode.NONE
        assert len(held) == 1
        assert await read_committed(broker.channel, _A0) == []
        await producer.channel.close()
        if is_kill:
            shutil.copytree(first, second)  # What is on disk while the broker runs.

    with monkeypatch.context() as patch:
        patch.setattr(MarkerSender, "deliver", lambda _, prepared: held.append(prepared))
        _run(first, decide)

    async def find(broker: RunningBroker) -> None:
        await _until_stable(broker, _A0, _A1)
        expected = [b"x"] if commit else []
        assert await read_committed(broker.channel, _A0) == expected
        assert await read_committed(broker.channel, _A1) == expected
        producer = await _start(broker, "pay", version)
        codes = await producer.produce(_A0, values=[b"next"], timestamp_ms=broker.now_ms)
        assert codes == [ErrorCode.NONE]
        assert await producer.end(commit=True) is ErrorCode.NONE
        await _until_stable(broker, _A0)
        assert await read_committed(broker.channel, _A0) == [*expected, b"next"]
        await producer.channel.close()

    _run(second if is_kill else first, find)


@both_versions
def test_the_next_transaction_waits_until_the_last_one_is_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    deliver = MarkerSender.deliver

    def deliver_late(sender: MarkerSender, prepared: PreparedTransaction) -> None:
        asyncio.get_running_loop().call_later(0.02, deliver, sender, prepared)

    monkeypatch.setattr(MarkerSender, "deliver", deliver_late)

    async def scenario(broker: RunningBroker) -> None:
        await broker.create_topic("orders", partitions=2)
        producer = await _start(broker, "pay", version)
        values = [b"%d" % number for number in range(5)]
        for value in values:
            codes = await producer.produce(_A0, _A1, values=[value], timestamp_ms=broker.now_ms)
            assert codes == [ErrorCode.NONE] * 2
            assert await producer.end(commit=True) is ErrorCode.NONE
        await _until_stable(broker, _A0, _A1)
        for partition in (_A0, _A1):
            assert await read_committed(broker.channel, partition) == values
        await producer.channel.close()

    _run(tmp_path, scenario)


class _Writer:
    """A producer of the random campaign, and what it has written but not decided."""

    def __init__(self, producer: TransactionalProducer) -> None:
        self.producer = producer
        self.open: list[tuple[int, bytes]] = []


@pytest.mark.parametrize("seed", range(rounds(4, 60)))
def test_readers_see_exactly_the_committed_records_in_order(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    #: (offset, value) of all that is committed, or not part of any transaction.
    committed: list[tuple[int, bytes]] = []

    async def write(broker: RunningBroker, writer: _Writer, values: list[bytes]) -> None:
        producer = writer.producer
        if producer.version == 1:
            assert await producer.add(_A0) == [ErrorCode.NONE]
        batch = producer.batch(_A0, values, broker.now_ms)
        request = producer.request({_A0: batch}, acks=random.choice((1, -1)))
        answer = await producer.channel.send(
            request, version=producer.produce_version, timeout_s=30
        )
        (part,) = answer.responses[0].partition_responses
        assert part.error_code == 0
        writer.open += [(part.base_offset + index, each) for index, each in enumerate(values)]

    async def end(writer: _Writer) -> None:
        commit = random.random() < 0.5
        assert await writer.producer.end(commit=commit) is ErrorCode.NONE
        if commit:
            committed.extend(writer.open)
        writer.open = []

    async def plain(broker: RunningBroker, values: list[bytes]) -> None:
        answer = await broker.produce("orders", values)
        committed.extend((answer.base_offset + index, each) for index, each in enumerate(values))

    async def check(broker: RunningBroker, writers: list[_Writer]) -> None:
        """Up to the last stable offset all must be there; and never more than was committed."""
        partition = broker.server.context.partitions.get(*_A0)
        stable = partition.last_stable_offset
        decided = dict(sorted(committed))
        start = random.randrange(stable + 1)
        found = await read_committed(
            broker.channel, _A0, start, random.choice((1, 100, 1000, 1 << 20))
        )
        expected = [value for offset, value in decided.items() if start <= offset < stable]
        assert found[: len(expected)] == expected
        everything = [value for offset, value in decided.items() if offset >= start]
        assert found == everything[: len(found)]
        first_open = [writer.open[0][0] for writer in writers if writer.open]
        if first_open:
            assert stable <= min(first_open)

    async def scenario(broker: RunningBroker) -> None:
        await broker.create_topic("orders", partitions=2)
        writers = [
            _Writer(await _start(broker, f"writer-{number}", random.choice((1, 2))))
            for number in range(4)
        ]
        for serial in range(120):
            values = [b"%d-%d" % (serial, index) for index in range(random.randint(1, 4))]
            writer = random.choice(writers)
            choice = random.random()
            if choice < 0.55:
                await write(broker, writer, values)
            elif choice < 0.7:
                await plain(broker, values)
            elif choice < 0.75:
                broker.server.context.partitions.get(*_A0).log.roll(broker.now_ms)
            elif choice < 0.9 and writer.open:
                await end(writer)
            else:
                await check(broker, writers)
        for writer in writers:
            if writer.open:
                await end(writer)
        await _until_stable(broker, _A0)
        found = await read_committed(broker.channel, _A0, 0, random.choice((1, 300, 1 << 20)))
        assert found == [value for _, value in sorted(committed)]
        for writer in writers:
            await writer.producer.channel.close()

    _run(tmp_path, scenario)


def test_many_producers_at_once_on_the_same_partitions(tmp_path: Path) -> None:
    async def scenario(broker: RunningBroker) -> None:
        await broker.create_topic("orders", partitions=2)
        expected: dict[str, list[bytes]] = {}

        async def work(name: str) -> None:
            random = Random(name)
            producer = await _start(broker, name, 1 + len(expected) % 2)
            kept = expected[name] = []
            for number in range(8):
                values = [f"{name}:{number}:{part}".encode() for part in range(2)]
                for value in values:
                    codes: list[Any] = await producer.produce(
                        _A0, _A1, values=[value], timestamp_ms=broker.now_ms
                    )
                    assert codes == [ErrorCode.NONE] * 2
                commit = random.random() < 0.6
                assert await producer.end(commit=commit) is ErrorCode.NONE
                if commit:
                    kept += values
            await producer.channel.close()

        await asyncio.gather(*(work(f"p{number}") for number in range(6)))
        await _until_stable(broker, _A0, _A1)
        for partition in (_A0, _A1):
            found = await read_committed(broker.channel, partition)
            assert sorted(found) == sorted(value for kept in expected.values() for value in kept)
            for name, kept in expected.items():
                assert [each for each in found if each.startswith(f"{name}:".encode())] == kept

    _run(tmp_path, scenario)
