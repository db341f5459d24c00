"""Batches of some kilobytes that would take hundreds of megabytes, in every codec."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from pathlib import Path

import pytest
import zstandard

from headwater.base.errors import ErrorCode
from headwater.replication.partition import record_inspections
from headwater.wire.api_keys import ApiKey
from headwater.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from headwater.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from headwater.wire.records import (
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC_V2,
    BatchHeader,
    Compression,
    Record,
    encode_batch,
)
from headwater.wire.records.batch_header import HEADER_STRUCT, write_crc
from tests.support.brokers.hostile_broker import (
    MEBIBYTE,
    RESIDENT_BYTES_MAX,
    attacked_broker,
)
from tests.support.brokers.running_broker import RunningBroker, run_broker_scenario
from tests.support.other_clients.confluent import ConfluentClient
from tests.support.other_clients.raw import RawConnection

BOMB_BYTES = 500 * MEBIBYTE
BOMB_COUNT = 12
#: What one batch of 128 MiB costs, twice over while its pieces are joined, and some room.
PEAK_BYTES_MAX = 450 * MEBIBYTE
CODECS = [each for each in Compression if each is not Compression.NONE]


def batch_around(section: bytes, compression: Compression) -> bytes:
    """A batch of one record as its header says, whatever the section really holds."""
    header = BatchHeader(
        base_offset=0,
        batch_length=HEADER_SIZE - LOG_OVERHEAD + len(section),
        leader_epoch=-1,
        magic=MAGIC_V2,
        crc=0,
        attributes=compression,
        last_offset_delta=0,
        base_timestamp=0,
        max_timestamp=0,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        record_count=1,
    )
    batch = bytearray(HEADER_SIZE + len(section))
    HEADER_STRUCT.pack_into(batch, 0, *header)
    batch[HEADER_SIZE:] = section
    write_crc(batch, 0, len(batch))
    return bytes(batch)


def zstd_bomb() -> bytes:
    """Zeros that are really there, under a header that tells how many."""
    compressor = zstandard.ZstdCompressor().compressobj(size=BOMB_BYTES)
    zeros = bytes(MEBIBYTE)
    section = b"".join(compressor.compress(zeros) for _ in range(BOMB_BYTES // MEBIBYTE))
    return batch_around(section + compressor.flush(), Compression.ZSTD)


def large_batch(compression: Compression, value_bytes: int, now_ms: int) -> bytes:
    return encode_batch(
        [Record(0, now_ms, b"key", bytes(value_bytes))], compression=compression, base_offset=0
    )


def test_a_dozen_bombs_take_the_memory_of_one(tmp_path: Path) -> None:
    bomb = zstd_bomb()
    assert len(bomb) < 64 << 10
    with ExitStack() as stack:
        broker = stack.enter_context(
            attacked_broker(tmp_path, resident_bytes_max=PEAK_BYTES_MAX + RESIDENT_BYTES_MAX)
        )
        client = ConfluentClient(broker.bootstrap)
        client.create_topic("kept", BOMB_COUNT, settings={"cleanup.policy": "compact"})
        connections = [
            stack.enter_context(RawConnection(broker.bootstrap)) for _ in range(BOMB_COUNT)
        ]
        before = broker.peak_resident_bytes()
        for number, connection in enumerate(connections):
            data = PartitionProduceData(index=number, records=bomb)
            topic = TopicProduceData(name="kept", partition_data=[data])
            connection.send(ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=[topic]), 9)
        for connection in connections:
            _, answer = connection.receive(ApiKey.PRODUCE, 9)
            [partition] = answer.responses[0].partition_responses
            assert partition.error_code == ErrorCode.MESSAGE_TOO_LARGE
        assert broker.peak_resident_bytes() - before < PEAK_BYTES_MAX


@pytest.mark.parametrize("compression", CODECS)
def test_the_topic_s_bound_holds_for_all_who_look_into_records(
    tmp_path: Path, compression: Compression
) -> None:
    bounded = {"max.decompressed.message.bytes": str(MEBIBYTE)}
    looked_into: dict[str, dict[str, str]] = {
        "compacted": {"cleanup.policy": "compact"},
        "recompressed": {"compression.type": "uncompressed"},
        "recent": {"message.timestamp.before.max.ms": "60000"},
    }

    async def scenario(broker: RunningBroker) -> None:
        fits = large_batch(compression, MEBIBYTE - 100, broker.now_ms)
        too_large = large_batch(compression, 2 * MEBIBYTE, broker.now_ms)
        for name, configs in looked_into.items():
            await broker.create_topic(name, configs={**configs, **bounded})
            answer = await broker.produce_batch(name, too_large)
            assert answer.error_code == ErrorCode.MESSAGE_TOO_LARGE, name
            answer = await broker.produce_batch(name, fits)
            assert (answer.error_code, answer.base_offset) == (0, 0), name
        # Nobody looks into it here, and a search by time does not get lost in it.
        await broker.create_topic("plain", configs=bounded)
        assert (await broker.produce_batch("plain", too_large)).error_code == 0
        asked = ListOffsetsPartition(partition_index=0, timestamp=broker.now_ms - 60_000)
        answer = await broker.send(
            ListOffsetsRequest(
                replica_id=-1, topics=[ListOffsetsTopic(name="plain", partitions=[asked])]
            )
        )
        [found] = answer.topics[0].partitions
        assert found.error_code == ErrorCode.INVALID_RECORD

    run_broker_scenario(tmp_path, scenario)


def test_large_batches_are_written_in_the_order_of_their_requests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some wait for their turn to be decompressed, others do not: the producer's order stays."""
    monkeypatch.setattr(record_inspections, "SMALL_BYTES_MAX", MEBIBYTE)

    async def scenario(broker: RunningBroker) -> None:
        await broker.create_topic("kept", configs={"cleanup.policy": "compact"})
        sizes = [3 * MEBIBYTE, 100, 2 * MEBIBYTE, 100_000, 2 * MEBIBYTE, 1]
        answers = await asyncio.gather(
            *(
                broker.produce_batch("kept", large_batch(Compression.ZSTD, size, broker.now_ms))
                for size in sizes
            )
        )
        assert [each.error_code for each in answers] == [0] * len(sizes)
        assert [each.base_offset for each in answers] == list(range(len(sizes)))
        assert [len(each) for each in await broker.values("kept")] == sizes

    run_broker_scenario(tmp_path, scenario)
