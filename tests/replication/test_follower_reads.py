"""Three brokers in three racks: consumers read from the replica in theirs (KIP-392)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from headwater import AsyncConsumer, Consumer, Producer, TopicPartition
from headwater.base.errors import ErrorCode
from headwater.client.ranges.range_client import RangeClient
from headwater.replication.partition.partition import Partition
from headwater.testing.apache_kafka import run_tool
from headwater.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from headwater.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic, PartitionData
from headwater.wire.records import decode_records
from tests.support.brokers.broker_cluster import BrokerCluster, run_cluster_scenario
from tests.support.kafka.node import require_apache_kafka

TOPIC = "orders"
SETTINGS = {
    "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector",
    "replica.lag.time.max.ms": "2000",
}
RACKS = {1: {"broker.rack": "a"}, 2: {"broker.rack": "b"}, 3: {"broker.rack": "c"}}
_TIMEOUT_S = 30.0


def _run(
    directory: Path,
    scenario: Callable[[BrokerCluster], Awaitable[None]],
    settings: Mapping[str, str] = SETTINGS,
) -> None:
    run_cluster_scenario(directory, scenario, settings, settings_of=RACKS)


def _partition(cluster: BrokerCluster, broker_id: int) -> Partition:
    return cluster.context(broker_id).partitions.get(TOPIC, 0)


async def _fetch(
    cluster: BrokerCluster,
    broker_id: int,
    offset: int = 0,
    *,
    rack: str = "",
    epoch: int = 0,
    version: int = 17,
    wait_ms: int = 0,
    committed_only: bool = False,
) -> PartitionData:
    request = FetchRequest(
        max_wait_ms=wait_ms,
        min_bytes=1,
        isolation_level=int(committed_only),
        session_epoch=-1,
        rack_id=rack,
        topics=[
            FetchTopic(
                topic=TOPIC,
                topic_id=_partition(cluster, broker_id).topic_id,
                partitions=[
                    FetchPartition(
                        partition=0,
                        fetch_offset=offset,
                        current_leader_epoch=epoch,
                        partition_max_bytes=1 << 20,
                    )
                ],
            )
        ],
    )
    response = await cluster.send(broker_id, request, version)
    data: PartitionData = response.responses[0].partitions[0]
    return data


async def _produce(cluster: BrokerCluster, values: list[bytes], **settings: Any) -> None:
    """Write with acks=all, one batch a record."""

    def work() -> None:
        with Producer(
            {"bootstrap.servers": cluster.bootstrap, "batch.size": 0, **settings}
        ) as producer:
            for value in values:
                producer.send(TOPIC, value).result(_TIMEOUT_S)

    await asyncio.to_thread(work)


async def _settled(cluster: BrokerCluster, end: int) -> None:
    """Every replica has all up to `end`, and knows it to be committed."""
    await cluster.until(
        lambda: all(_partition(cluster, each).high_watermark == end for each in cluster.servers)
    )


def _values(data: PartitionData) -> list[bytes]:
    assert data.error_code == ErrorCode.NONE
    records = data.records
    assert isinstance(records, bytes | bytearray | memoryview)
    return [bytes(record.value or b"") for record in decode_records(records)]


def test_a_leader_names_the_replica_in_the_consumers_rack(tmp_path: Path) -> None:
    async def scenario(cluster: BrokerCluster) -> None:
        await cluster.create_topic(TOPIC, [[1, 2, 3]])
        await _produce(cluster, [b"0", b"1"])
        await _settled(cluster, 2)
        told = await _fetch(cluster, 1, 1, rack="c", wait_ms=10_000)
        assert (told.preferred_read_replica, _values(told)) == (3, [])
        assert (told.high_watermark, told.last_stable_offset, told.log_start_offset) == (2, 2, 0)
        for rack, version in (("a", 17), ("nowhere", 17), ("", 17), ("c", 10)):
            served = await _fetch(cluster, 1, 1, rack=rack, version=version)
            assert (served.preferred_read_replica, _values(served)) == (-1, [b"1"])
        # One that has left is not named any more.
        await cluster.stop(3)
        await cluster.until(lambda: 3 not in _partition(cluster, 1).isr)
        assert _values(await _fetch(cluster, 1, 1, rack="c")) == [b"1"]

    _run(tmp_path, scenario)


def test_without_the_selector_the_leader_serves_everybody(tmp_path: Path) -> None:
    async def scenario(cluster: BrokerCluster) -> None:
        await cluster.create_topic(TOPIC, [[1, 2, 3]])
        await _produce(cluster, [b"0"])
        await _settled(cluster, 1)
        served = await _fetch(cluster, 1, rack="c")
        assert (served.preferred_read_replica, _values(served)) == (-1, [b"0"])

    _run(
        tmp_path,
        scenario,
        {"replica.selector.class": "org.apache.kafka.common.replica.LeaderSelector"},
    )


def test_a_follower_serves_what_it_knows_to_be_committed(tmp_path: Path) -> None:
    async def scenario(cluster: BrokerCluster) -> None:
        await cluster.create_topic(TOPIC, [[1, 2, 3]])
        await _produce(cluster, [b"%d" % number for number in range(5)])
        await _settled(cluster, 5)
        assert _values(await _fetch(cluster, 2, 3)) == [b"3", b"4"]
        assert (await _fetch(cluster, 2, 3, version=10)).error_code == (
            ErrorCode.NOT_LEADER_OR_FOLLOWER
        )
        # The end, what only the leader may have, and what is deleted.
        assert _values(await _fetch(cluster, 2, 5)) == []
        assert (await _fetch(cluster, 2, 6)).error_code == ErrorCode.OFFSET_NOT_AVAILABLE
        assert (await _fetch(cluster, 1, 6)).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
        request = DeleteRecordsRequest(
            timeout_ms=10_000,
            topics=[
                DeleteRecordsTopic(
                    name=TOPIC, partitions=[DeleteRecordsPartition(partition_index=0, offset=2)]
                )
            ],
        )
        await cluster.send(1, request)
        await cluster.until(lambda: _partition(cluster, 2).log_start_offset == 2)
        assert (await _fetch(cluster, 2, 1)).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
        # Other epochs than its own.
        assert (await _fetch(cluster, 2, 3, epoch=1)).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
        await cluster.stop(1)
        await cluster.until(lambda: _partition(cluster, 3).leader == 2)
        assert (await _fetch(cluster, 3, 3)).error_code == ErrorCode.FENCED_LEADER_EPOCH
        assert _values(await _fetch(cluster, 3, 3, epoch=1)) == [b"3", b"4"]

    _run(tmp_path, scenario)


def test_a_follower_shows_nothing_that_is_not_committed(tmp_path: Path) -> None:
    async def scenario(cluster: BrokerCluster) -> None:
        await cluster.create_topic(TOPIC, [[1, 2, 3]])
        await _produce(cluster, [b"0"])
        await _settled(cluster, 1)
        # The third follower stands still but is in sync: nothing more is committed.
        stuck = cluster.context(3).replication.fetchers
        stuck.removed(_partition(cluster, 3))
        writing = asyncio.create_task(_produce(cluster, [b"1"]))
        await cluster.until(lambda: _partition(cluster, 2).log_end_offset == 2)
        assert _values(await _fetch(cluster, 2, 0)) == [b"0"]
        assert _values(await _fetch(cluster, 2, 1)) == []
        # A reader waits for it, and is answered as soon as the follower knows it to be committed.
        waiting = asyncio.create_task(_fetch(cluster, 2, 1, wait_ms=60_000))
        await cluster.until(lambda: len(cluster.context(2).parked.fetch) > 0)
        stuck.role_changed(_partition(cluster, 3))
        assert _values(await waiting) == [b"1"]
        await writing

    _run(tmp_path, scenario, {**SETTINGS, "replica.lag.time.max.ms": "60000"})


def test_who_waits_at_a_follower_hears_of_a_new_leader(tmp_path: Path) -> None:
    async def scenario(cluster: BrokerCluster) -> None:
        await cluster.create_topic(TOPIC, [[1, 2, 3]])
        waiting = asyncio.create_task(_fetch(cluster, 2, 0, wait_ms=60_000))
        await cluster.until(lambda: len(cluster.context(2).parked.fetch) > 0)
        await cluster.stop(1)
        assert (await waiting).error_code == ErrorCode.FENCED_LEADER_EPOCH

    _run(tmp_path, scenario)


def test_transactions_and_delays_look_the_same_on_every_replica(tmp_path: Path) -> None:
    async def scenario(cluster: BrokerCluster) -> None:
        await cluster.create_topic(TOPIC, [[1, 2, 3]], {"delay.mode": "header"})
        may_end = threading.Event()
        is_open = threading.Event()

        def write() -> None:
            settings = {"bootstrap.servers": cluster.bootstrap}
            with (
                Producer(settings) as plain,
                Producer(settings, transactional_id="aborting") as aborting,
                Producer(settings, transactional_id="open") as opened,
            ):
                plain.send(TOPIC, b"first").result(_TIMEOUT_S)
                aborting.init_transactions()
                aborting.begin_transaction()
                aborting.send(TOPIC, b"aborted").result(_TIMEOUT_S)
                aborting.abort_transaction()
                plain.send(TOPIC, b"second").result(_TIMEOUT_S)
                opened.init_transactions()
                opened.begin_transaction()
                opened.send(TOPIC, b"undecided").result(_TIMEOUT_S)
                plain.send(TOPIC, b"behind").result(_TIMEOUT_S)
                plain.send(TOPIC, b"waits", delay="2h").result(_TIMEOUT_S)
                is_open.set()
                may_end.wait(_TIMEOUT_S)
                opened.commit_transaction()

        def told(data: PartitionData) -> tuple[Any, ...]:
            aborted = data.aborted_transactions
            return (
                _values(data),
                data.high_watermark,
                data.last_stable_offset,
                data.log_start_offset,
                None if aborted is None else [each.first_offset for each in aborted],
            )

        async def check_alike(count: int) -> tuple[Any, ...]:
            end = _partition(cluster, 1).log_end_offset
            await _settled(cluster, end)
            for committed_only in (False, True):
                by_leader, *by_followers = [
                    told(await _fetch(cluster, each, committed_only=committed_only))
                    for each in (1, 2, 3)
                ]
                assert by_followers == [by_leader, by_leader]
            values, high_watermark, stable, _, aborted = by_leader
            assert b"waits" not in values
            assert high_watermark < end  # What waits is the last, and cannot be seen.
            assert len(aborted) == count
            return values, stable - high_watermark

        writing = asyncio.create_task(asyncio.to_thread(write))
        try:
            await cluster.until(is_open.is_set)
            values, unstable = await check_alike(1)
            assert b"second" in values
            assert b"behind" not in values
            assert unstable < 0
        finally:
            may_end.set()
        await writing
        await cluster.until(
            lambda: (
                _partition(cluster, 1).last_stable_offset == _partition(cluster, 1).log_end_offset
            )
        )

    _run(tmp_path, scenario)


def _bytes_out(cluster: BrokerCluster) -> dict[int, int]:
    return {each: _partition(cluster, each).bytes_out for each in cluster.servers}


_VALUES = [b"%d" % number for number in range(50)]


def _read_with_threads(bootstrap: str) -> list[bytes]:
    with Consumer(
        bootstrap_servers=bootstrap, client_rack="c", auto_offset_reset="earliest"
    ) as consumer:
        consumer.assign([TopicPartition(TOPIC, 0)])
        values: list[bytes] = []
        while len(values) < len(_VALUES):
            values += [record.value or b"" for record in consumer.poll(1.0)]
        return values


def _read_with_asyncio(bootstrap: str) -> list[bytes]:
    async def read() -> list[bytes]:
        async with AsyncConsumer(
            bootstrap_servers=bootstrap, client_rack="c", auto_offset_reset="earliest"
        ) as consumer:
            await consumer.assign([TopicPartition(TOPIC, 0)])
            values: list[bytes] = []
            while len(values) < len(_VALUES):
                values += [record.value or b"" for record in await consumer.poll(1.0)]
            return values

    return asyncio.run(read())


def _read_with_ranges(bootstrap: str) -> list[bytes]:
    client = RangeClient({"bootstrap.servers": bootstrap, "client.rack": "c"})
    try:
        parts = client.read(TopicPartition(TOPIC, 0), 0, len(_VALUES))
        return [_VALUES[offset] for part in parts for offset in part.offsets]
    finally:
        client.close()


def _read_with_librdkafka(bootstrap: str) -> list[bytes]:
    confluent = pytest.importorskip("confluent_kafka")
    consumer = confluent.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "readers",
            "client.rack": "c",
            "auto.offset.reset": "earliest",
        }
    )
    try:
        consumer.assign([confluent.TopicPartition(TOPIC, 0, 0)])
        values: list[bytes] = []
        while len(values) < len(_VALUES):
            message = consumer.poll(1.0)
            if message is not None and message.error() is None:
                values.append(message.value())
        return values
    finally:
        consumer.close()


def _read_with_java(bootstrap: str) -> list[bytes]:
    printed = run_tool(
        "console-consumer",
        [
            *("--bootstrap-server", bootstrap, "--topic", TOPIC),
            *("--partition", "0", "--offset", "0", "--max-messages", str(len(_VALUES))),
            *("--command-property", "client.rack=c"),
        ],
        kafka=require_apache_kafka(),
    ).stdout
    return [line.encode() for line in printed.splitlines()]


@pytest.mark.parametrize(
    "read",
    [
        _read_with_threads,
        _read_with_asyncio,
        _read_with_ranges,
        _read_with_librdkafka,
        pytest.param(_read_with_java, marks=[pytest.mark.full, pytest.mark.kafka]),
    ],
)
def test_a_client_reads_from_the_follower_in_its_rack(
    tmp_path: Path, read: Callable[[str], list[bytes]]
) -> None:
    async def scenario(cluster: BrokerCluster) -> None:
        await cluster.create_topic(TOPIC, [[1, 2, 3]])
        await _produce(cluster, _VALUES)
        await _settled(cluster, len(_VALUES))
        assert await asyncio.to_thread(read, cluster.bootstrap) == _VALUES
        sent = _bytes_out(cluster)
        assert sent[3] > 0
        assert (sent[1], sent[2]) == (0, 0)

    _run(tmp_path, scenario)


def test_a_reader_outlives_the_follower_it_read_from(tmp_path: Path) -> None:
    async def scenario(cluster: BrokerCluster) -> None:
        await cluster.create_topic(TOPIC, [[1, 2, 3]])
        await _produce(cluster, _VALUES)
        await _settled(cluster, len(_VALUES))
        async with AsyncConsumer(
            bootstrap_servers=cluster.bootstrap, client_rack="c", auto_offset_reset="earliest"
        ) as consumer:
            await consumer.assign([TopicPartition(TOPIC, 0)])
            values: list[bytes] = []

            async def read_to(count: int) -> None:
                async with asyncio.timeout(_TIMEOUT_S):
                    while len(values) < count:
                        values.extend(each.value or b"" for each in await consumer.poll(0.5))

            await read_to(len(_VALUES))
            assert _bytes_out(cluster)[1] == 0
            await cluster.stop(3)
            await _produce(cluster, [b"later"])
            await read_to(len(_VALUES) + 1)
            assert values == [*_VALUES, b"later"]
            assert _bytes_out(cluster)[1] > 0

    _run(tmp_path, scenario)
