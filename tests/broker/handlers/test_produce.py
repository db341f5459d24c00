"""What becomes of a produce request."""

import asyncio
import errno
import os
from pathlib import Path

import pytest

from headwater.base.clocks import SystemClock
from headwater.base.errors import ErrorCode
from headwater.net.peer_channel import PeerUnavailableError
from headwater.storage.segments.segment import LogSegment
from headwater.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from headwater.wire.records import Compression, Record, encode_batch
from tests.support.brokers.running_broker import (
    PRODUCE_VERSION,
    RunningBroker,
    batch_of,
    produce_request,
    run_broker_scenario,
)


@pytest.mark.parametrize("acks", [1, -1])
@pytest.mark.parametrize("flush", ["auto", "off", "leader"])
def test_records_are_acknowledged_and_stored(tmp_path: Path, acks: int, flush: str) -> None:
    async def scenario(broker: RunningBroker) -> None:
        await broker.create_topic("orders", partitions=2)
        first = await broker.produce("orders", [b"a", b"b"], acks=acks)
        second = await broker.produce("orders", [b"c"], acks=acks)
        other = await broker.produce("orders", [b"d"], acks=acks, partition=1)
        assert [each.base_offset for each in (first, second, other)] == [0, 2, 0]
        assert {each.error_code for each in (first, second, other)} == {0}
        assert await broker.values("orders") == [b"a", b"b", b"c"]
        assert await broker.values("orders", partition=1) == [b"d"]
        log = broker.server.context.partitions.get("orders", 0).log
        if acks == -1 and flush != "off":
            assert log.flushed_offset == 3

    run_broker_scenario(tmp_path, scenario, {"acks.all.flush": flush})


def test_flush_messages_of_one_acknowledges_nothing_that_is_not_on_disk(tmp_path: Path) -> None:
    async def scenario(broker: RunningBroker) -> None:
        await broker.create_topic("orders", configs={"flush.messages": "1"})
        log = broker.server.context.partitions.get("orders", 0).log
        for number in range(1, 4):
            await broker.produce("orders", [b"a"], acks=1)
            assert log.flushed_offset == number

    run_broker_scenario(tmp_path, scenario)


def test_many_waiting_producers_share_fsyncs(tmp_path: Path) -> None:
    async def scenario(broker: RunningBroker) -> None:
        await broker.create_topic("orders")
        batch = batch_of([b"x"], broker.now_ms)
        pending = [
            broker.channel.send_nowait(
                produce_request("orders", batch, acks=-1), version=PRODUCE_VERSION
            )
            for _ in range(50)
        ]
        answers = [(await each).responses[0].partition_responses[0] for each in pending]
        assert [each.base_offset for each in answers] == list(range(50))
        partition = broker.server.context.partitions.get("orders", 0)
        assert partition.log.flushed_offset == 50
        assert 1 <= partition.fsync_rounds < 50

    run_broker_scenario(tmp_path, scenario, {"acks.all.flush": "auto"})


def test_acks_zero_is_not_answered_and_an_error_closes_the_connection(tmp_path: Path) -> None:
    async def scenario(broker: RunningBroker) -> None:
        await broker.create_topic("orders")
        batch = batch_of([b"x"], broker.now_ms)
        channel = await broker.connect()
        channel.send_without_answer(
            produce_request("orders", batch, acks=0), version=PRODUCE_VERSION
        )
        # The answer to a later request shows that the earlier one is through.
        await channel.send(produce_request("orders", batch), version=12, timeout_s=10)
        assert await broker.values("orders") == [b"x", b"x"]
        channel.send_without_answer(
            produce_request("unknown", batch, acks=0), version=PRODUCE_VERSION
        )
        with pytest.raises(PeerUnavailableError):
            await channel.send(produce_request("orders", batch), version=12, timeout_s=10)
        await channel.close()

    run_broker_scenario(tmp_path, scenario)


def _broken(batch: bytes, position: int, value: int) -> bytes:
    data = bytearray(batch)
    data[position] = value
    return bytes(data)


def test_what_is_refused_says_why_and_stores_nothing(tmp_path: Path) -> None:
    async def scenario(broker: RunningBroker) -> None:
        await broker.create_topic("orders", configs={"max.message.bytes": "1000"})
        await broker.create_topic("compacted", configs={"cleanup.policy": "compact"})
        good = batch_of([b"x"], broker.now_ms)
        zstd = batch_of([b"x"], broker.now_ms, compression=Compression.ZSTD)
        keyless = encode_batch(
            [Record(0, broker.now_ms, b"k", b"v"), Record(1, broker.now_ms, None, b"v")],
            base_offset=0,
        )
        late = batch_of([b"x"], broker.now_ms + 7_200_000)
        loose = batch_of(
            [b"x"],
            broker.now_ms,
            producer_id=1,
            producer_epoch=0,
            base_sequence=0,
            transactional=True,
        )
        cases: list[tuple[str, bytes | None, int, int, ErrorCode]] = [
            ("unknown", good, 1, 12, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            ("orders", good, 2, 12, ErrorCode.INVALID_REQUIRED_ACKS),
            ("orders", None, 1, 12, ErrorCode.INVALID_RECORD),
            ("orders", b"", 1, 12, ErrorCode.INVALID_RECORD),
            ("orders", good[:-1], 1, 12, ErrorCode.INVALID_RECORD),
            ("orders", good + good, 1, 12, ErrorCode.INVALID_RECORD),
            ("orders", _broken(good, 16, 1), 1, 12, ErrorCode.INVALID_RECORD),
            ("orders", _broken(good, 16, 9), 1, 12, ErrorCode.CORRUPT_MESSAGE),
            ("orders", _broken(good, len(good) - 1, 7), 1, 12, ErrorCode.CORRUPT_MESSAGE),
            ("orders", _broken(good, 11, 3), 1, 12, ErrorCode.CORRUPT_MESSAGE),
            ("orders", zstd, 1, 6, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
            ("orders", batch_of([b"x" * 2000], 0), 1, 12, ErrorCode.MESSAGE_TOO_LARGE),
            ("orders", late, 1, 12, ErrorCode.INVALID_TIMESTAMP),
            ("compacted", keyless, 1, 12, ErrorCode.INVALID_RECORD),
            ("orders", loose, 1, 12, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
        ]
        for topic, batch, acks, version, code in cases:
            request = produce_request(topic, batch or b"", acks=acks)
            request.topic_data[0].partition_data[0].records = batch
            answer = (await broker.send(request, version)).responses[0].partition_responses[0]
            assert (answer.error_code, answer.base_offset) == (code, -1), (topic, code)
            if version >= 8:
                assert answer.error_message
            if batch is keyless:
                assert [each.batch_index for each in answer.record_errors] == [1]
        assert await broker.values("orders") == []
        assert await broker.values("compacted") == []

    run_broker_scenario(tmp_path, scenario)


def test_bytes_behind_the_batch_that_are_no_batch_do_not_count(tmp_path: Path) -> None:
    async def scenario(broker: RunningBroker) -> None:
        await broker.create_topic("orders")
        answer = await broker.produce_batch("orders", batch_of([b"x"], broker.now_ms) + b"abc")
        assert answer.error_code == 0
        assert await broker.values("orders") == [b"x"]

    run_broker_scenario(tmp_path, scenario)


def test_one_request_may_bring_batches_for_many_partitions_with_an_answer_each(
    tmp_path: Path,
) -> None:
    async def scenario(broker: RunningBroker) -> None:
        await broker.create_topic("orders", partitions=3)
        batch = batch_of([b"x"], broker.now_ms)
        data = [PartitionProduceData(index=number, records=batch) for number in (2, 0, 7)]
        request = ProduceRequest(
            acks=-1,
            timeout_ms=10_000,
            topic_data=[TopicProduceData(name="orders", partition_data=data)],
        )
        answers = (await broker.send(request, 12)).responses[0].partition_responses
        assert [(each.index, each.error_code) for each in answers] == [
            (2, 0),
            (0, 0),
            (7, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ]

    run_broker_scenario(tmp_path, scenario, {"acks.all.flush": "auto"})


def test_topics_are_found_by_id(tmp_path: Path) -> None:
    async def scenario(broker: RunningBroker) -> None:
        await broker.create_topic("orders")
        topic_id = broker.server.context.image.topics["orders"].topic_id
        request = produce_request("", batch_of([b"x"], broker.now_ms))
        request.topic_data[0].topic_id = topic_id
        response = await broker.send(request, 13)
        assert response.responses[0].topic_id == topic_id
        assert response.responses[0].partition_responses[0].error_code == 0
        request.topic_data[0].topic_id = type(topic_id)(int=12345)
        response = await broker.send(request, 13)
        answer = response.responses[0].partition_responses[0]
        assert answer.error_code == ErrorCode.UNKNOWN_TOPIC_ID
        assert await broker.values("orders") == [b"x"]

    run_broker_scenario(tmp_path, scenario)


def test_a_repeated_batch_is_acknowledged_again_and_stored_once_also_after_a_restart(
    tmp_path: Path,
) -> None:
    # A producer whose last record is older than producer.id.expiration.ms would be forgotten.
    now_ms = SystemClock().wall_ms()

    def batch(sequence: int, value: bytes) -> bytes:
        return batch_of([value], now_ms, producer_id=7, producer_epoch=0, base_sequence=sequence)

    async def before(broker: RunningBroker) -> None:
        await broker.create_topic("orders")
        for _ in range(2):
            assert (await broker.produce_batch("orders", batch(0, b"a"))).base_offset == 0
            assert (await broker.produce_batch("orders", batch(1, b"b"))).base_offset == 1

    async def after(broker: RunningBroker) -> None:
        answer = await broker.produce_batch("orders", batch(1, b"b"))
        assert (answer.error_code, answer.base_offset) == (0, 1)
        gap = await broker.produce_batch("orders", batch(5, b"f"))
        assert gap.error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert await broker.values("orders") == [b"a", b"b"]

    run_broker_scenario(tmp_path, before)
    run_broker_scenario(tmp_path, after)


@pytest.mark.parametrize(
    "configs", [{"cleanup.policy": "compact"}, {"compression.type": "zstd"}], ids=str
)
def test_batches_that_are_looked_into_keep_their_order(
    tmp_path: Path, configs: dict[str, str]
) -> None:
    """Large batches are prepared in threads, small ones would be faster, and none overtakes."""

    async def scenario(broker: RunningBroker) -> None:
        await broker.create_topic("orders", configs=configs)
        values = [
            b"%04d" % number + (b"x" * 50_000 if number % 3 == 0 else b"") for number in range(30)
        ]
        pending = []
        for number, value in enumerate(values):
            batch = batch_of(
                [value], broker.now_ms, producer_id=9, producer_epoch=0, base_sequence=number
            )
            request = produce_request("orders", batch, acks=-1)
            pending.append(broker.channel.send_nowait(request, version=PRODUCE_VERSION))
        answers = [(await each).responses[0].partition_responses[0] for each in pending]
        assert [(each.error_code, each.base_offset) for each in answers] == [
            (0, number) for number in range(30)
        ]
        assert await broker.values("orders") == values

    run_broker_scenario(tmp_path, scenario)


def test_a_large_batch_that_is_refused_lets_the_next_one_pass(tmp_path: Path) -> None:
    async def scenario(broker: RunningBroker) -> None:
        await broker.create_topic("orders", configs={"cleanup.policy": "compact"})
        keyless = encode_batch([Record(0, broker.now_ms, None, b"v" * 50_000)], base_offset=0)
        sent = [
            broker.channel.send_nowait(produce_request("orders", batch), version=PRODUCE_VERSION)
            for batch in (keyless, batch_of([b"x"], broker.now_ms))
        ]
        codes = [
            (await each).responses[0].partition_responses[0].error_code
            for each in asyncio.as_completed(sent)
        ]
        assert sorted(codes) == [0, ErrorCode.INVALID_RECORD]
        assert await broker.values("orders") == [b"x"]

    run_broker_scenario(tmp_path, scenario)


def test_a_disk_that_refuses_appends_is_one_line_in_the_log_however_many_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(broker: RunningBroker) -> None:
        await broker.create_topic("orders", partitions=2)

        def refuse(*_arguments: object, **_named: object) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        with monkeypatch.context() as patch:
            patch.setattr(LogSegment, "append", refuse)
            for partition in (0, 1, 0):
                answer = await broker.produce("orders", [b"x"], partition=partition)
                assert answer.error_code == ErrorCode.KAFKA_STORAGE_ERROR
        for partition in (0, 1):
            assert (await broker.produce("orders", [b"x"], partition=partition)).error_code == 0
        assert await broker.values("orders") == [b"x"]

    run_broker_scenario(tmp_path, scenario)
    lines = [each.getMessage() for each in caplog.records if str(tmp_path) in each.getMessage()]
    assert len(lines) == 2
    assert "No space left" in lines[0]
    assert "again" in lines[1]
