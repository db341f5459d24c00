"""DescribeLogDirs and AlterReplicaLogDirs: what lies where, and moving it."""

import asyncio
import errno
from pathlib import Path

import pytest

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import TopicPartition
from headwater.storage.directories import maintenance
from headwater.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopic,
)
from headwater.wire.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
)
from headwater.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from tests.support.brokers.handler_broker import HandlerBroker, run_with_broker

#: Topic, partition, size, lag, whether it is a copy on its way.
Entry = tuple[str, int, int, int, bool]


async def describe(
    broker: HandlerBroker, topics: dict[str, list[int]] | None = None, *, version: int = 5
) -> dict[str, DescribeLogDirsResult]:
    wanted = None
    if topics is not None:
        wanted = [
            DescribableLogDirTopic(topic=topic, partitions=partitions)
            for topic, partitions in topics.items()
        ]
    request = DescribeLogDirsRequest(topics=wanted)
    answer = await broker.ask(request, DescribeLogDirsResponse, version=version)
    assert answer.error_code == 0
    return {result.log_dir: result for result in answer.results}


def entries(result: DescribeLogDirsResult) -> list[Entry]:
    return sorted(
        (topic.name, each.partition_index, each.partition_size, each.offset_lag, each.is_future_key)
        for topic in result.topics
        for each in topic.partitions
    )


async def move(broker: HandlerBroker, path: str, topic: str, partition: int) -> int:
    request = AlterReplicaLogDirsRequest(
        dirs=[
            AlterReplicaLogDir(
                path=path, topics=[AlterReplicaLogDirTopic(name=topic, partitions=[partition])]
            )
        ]
    )
    answer = await broker.ask(request, AlterReplicaLogDirsResponse)
    (result,) = answer.results
    (part,) = result.partitions
    assert (result.topic_name, part.partition_index) == (topic, partition)
    return part.error_code


def two_directories(tmp_path: Path) -> dict[str, str]:
    return {"log.dirs": f"{tmp_path}/one,{tmp_path}/two"}


@pytest.mark.parametrize("version", [1, 2, 3, 4, 5])
def test_sizes_and_disks(tmp_path: Path, version: int) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await broker.create_topic("orders", partitions=2)
        broker.append("orders", 1, 2, 3)
        size = broker.context.partitions.get("orders", 0).log.size_bytes
        assert size > 0
        results = await describe(broker, version=version)
        assert sorted(results) == [f"{tmp_path}/one", f"{tmp_path}/two"]
        found = [entry for result in results.values() for entry in entries(result)]
        assert sorted(found) == [("orders", 0, size, 0, False), ("orders", 1, 0, 0, False)]
        for result in results.values():
            assert (result.error_code, result.is_cordoned) == (0, False)
            assert len(entries(result)) == 1
            if version >= 4:
                assert 0 < result.usable_bytes <= result.total_bytes
            else:
                assert (result.usable_bytes, result.total_bytes) == (-1, -1)

    run_with_broker(tmp_path, scenario, two_directories(tmp_path))


def test_only_what_is_asked_for(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await broker.create_topic("orders", partitions=2)
        (result,) = (await describe(broker, {"orders": [1, 9], "nope": [0]})).values()
        assert [entry[:2] for entry in entries(result)] == [("orders", 1)]
        (result,) = (await describe(broker, {})).values()
        assert (result.topics, result.error_code) == ([], 0)

    run_with_broker(tmp_path, scenario)


def test_a_log_moves_and_its_copy_is_shown_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Copies are looked after once, at the start, when there are none.
    monkeypatch.setattr(maintenance, "MOVE_INTERVAL_MS", 3_600_000)

    async def scenario(broker: HandlerBroker) -> None:
        await broker.create_topic("orders")
        broker.append("orders", 1, 2, 3)
        partition = TopicPartition("orders", 0)
        directories = broker.context.directories
        source = directories.directory_of(partition)
        assert source is not None
        (target,) = (each for each in directories.directories if each is not source)
        assert await move(broker, source.path, "orders", 0) == 0
        assert await move(broker, target.path, "orders", 0) == 0
        size = broker.context.partitions.get("orders", 0).log.size_bytes
        results = await describe(broker)
        assert entries(results[source.path]) == [("orders", 0, size, 0, False)]
        assert entries(results[target.path]) == [("orders", 0, 0, 3, True)]
        # The copy is given up when the log is to stay where it is.
        assert await move(broker, source.path, "orders", 0) == 0
        assert entries((await describe(broker))[target.path]) == []

    run_with_broker(tmp_path, scenario, two_directories(tmp_path))


@pytest.mark.parametrize(
    ("path", "topic", "partition", "code"),
    [
        ("/nope", "orders", 0, ErrorCode.LOG_DIR_NOT_FOUND),
        ("relative", "orders", 0, ErrorCode.LOG_DIR_NOT_FOUND),
        ("", "nope", 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("", "orders", 9, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
def test_what_cannot_move(
    tmp_path: Path, path: str, topic: str, partition: int, code: ErrorCode
) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await broker.create_topic("orders")
        assert await move(broker, path or str(tmp_path), topic, partition) == code
        assert broker.context.metrics.errors == {(34, code): 1}

    run_with_broker(tmp_path, scenario)


def test_a_directory_whose_disk_failed(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await broker.create_topic("orders", partitions=2)
        failed, working = broker.context.directories.directories
        failed.fail(OSError(errno.EIO, "broken", failed.path))
        results = await describe(broker)
        assert results[failed.path].error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert results[failed.path].topics == []
        assert len(entries(results[working.path])) == 1
        (moved,) = (log.partition.partition for log in working.logs.values())
        assert await move(broker, failed.path, "orders", moved) == ErrorCode.KAFKA_STORAGE_ERROR

    run_with_broker(tmp_path, scenario, two_directories(tmp_path))


def test_a_partition_serves_from_its_new_directory(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await broker.create_topic("orders")
        broker.append("orders", 1, 2, 3)
        name = TopicPartition("orders", 0)
        partition, directories = broker.context.partitions.get(*name), broker.context.directories
        old = partition.log
        source = directories.directory_of(name)
        (target,) = (each for each in directories.directories if each is not source)
        assert await move(broker, target.path, "orders", 0) == 0
        for number in range(2000):
            if directories.directory_of(name) is target:
                break
            # Appends go on, and so do fsyncs of whichever log serves.
            if number < 50:
                broker.append("orders", 4)
            partition.request_fsync(partition.log_end_offset)
            await asyncio.sleep(0.005)
        assert partition.log is directories.find(name)
        assert partition.log is not old
        end_offset = partition.log_end_offset
        broker.append("orders", 5)
        assert partition.high_watermark == end_offset + 1
        partition.request_fsync(end_offset + 1)
        await partition.close()
        assert partition.log.flushed_offset == end_offset + 1
        assert partition.fsync_rounds > 0
        assert partition.log.read(0, 1 << 20).region is not None
        results = await describe(broker)
        assert [entry[:2] for entry in entries(results[target.path])] == [("orders", 0)]

    run_with_broker(tmp_path, scenario, two_directories(tmp_path))


def test_a_cordoned_directory(tmp_path: Path) -> None:
    one, two = f"{tmp_path}/one", f"{tmp_path}/two"

    async def cordon(broker: HandlerBroker, text: str) -> int:
        resource = AlterConfigsResource(
            resource_type=4,
            resource_name="0",
            configs=[AlterableConfig(name="cordoned.log.dirs", config_operation=0, value=text)],
        )
        request = IncrementalAlterConfigsRequest(resources=[resource])
        answer = await broker.ask(request, IncrementalAlterConfigsResponse)
        return answer.responses[0].error_code

    async def scenario(broker: HandlerBroker) -> None:
        results = await describe(broker)
        assert [results[path].is_cordoned for path in (one, two)] == [True, False]
        await broker.create_topic("orders", partitions=3)
        assert [len(entries(result)) for result in (await describe(broker)).values()] == [0, 3]
        assert await move(broker, one, "orders", 0) == ErrorCode.INVALID_REPLICA_ASSIGNMENT
        assert not any(each.is_cordoned for each in (await describe(broker, version=4)).values())

        assert await cordon(broker, "/elsewhere") == ErrorCode.INVALID_REQUEST
        assert await cordon(broker, f"*,{one}") == ErrorCode.INVALID_REQUEST
        assert await cordon(broker, "*") == 0
        assert all(each.is_cordoned for each in (await describe(broker)).values())
        with pytest.raises(KafkaError) as refused:
            await broker.create_topic("more")
        assert refused.value.code is ErrorCode.INVALID_REPLICATION_FACTOR

        assert await cordon(broker, "") == 0
        await broker.create_topic("more")
        assert len(entries((await describe(broker))[one])) == 1

    run_with_broker(tmp_path, scenario, two_directories(tmp_path) | {"cordoned.log.dirs": one})
