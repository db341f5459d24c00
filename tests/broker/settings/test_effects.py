"""Settings of topics, threads and identity change what a running broker does."""

import asyncio
import threading
from pathlib import Path

import pytest

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import TopicPartition
from headwater.base.threads import RunInThread
from headwater.broker.server import BrokerServer
from headwater.broker.settings.static_settings import static_of
from headwater.cluster.image.image import ConfigResource, PartitionImage, ResourceKind
from headwater.cluster.topics.new_topic import NewTopic
from headwater.wire.records import Record, encode_batch
from tests.support.brokers.handler_broker import BASE_TIMESTAMP, HandlerBroker, run_with_broker

ALL_BROKERS = ConfigResource(ResourceKind.BROKER, "")


def test_num_partitions(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await broker.context.controller.create_topics([NewTopic("orders")])
        assert len(broker.context.image.topics["orders"].partitions) == 3

    run_with_broker(tmp_path, scenario, {"num.partitions": "3"})


@pytest.mark.parametrize("text", ["true", "false"])
def test_delete_topic_enable(tmp_path: Path, text: str) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await broker.create_topic("orders")
        outcome = (await broker.context.controller.delete_topics(["orders"]))["orders"]
        if text == "true":
            assert outcome is None and "orders" not in broker.context.image.topics
        else:
            assert isinstance(outcome, KafkaError)
            assert outcome.code is ErrorCode.TOPIC_DELETION_DISABLED

    run_with_broker(tmp_path, scenario, {"delete.topic.enable": text})


def test_min_insync_replicas_of_the_broker_and_of_a_topic(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await broker.create_topic("orders")
        await broker.create_topic("others", configs={"min.insync.replicas": "1"})
        for topic in ("orders", "others"):
            # As if there were a second replica, which is behind.
            image = PartitionImage((0, 1), (0,), leader=0, leader_epoch=0, partition_epoch=1)
            broker.context.partitions.get(topic, 0).apply(image)
        batch = encode_batch([Record(0, BASE_TIMESTAMP, b"k", b"v")])

        def append(topic: str, acks: int) -> None:
            partition = broker.context.partitions.get(topic, 0)
            partition.append(bytearray(batch), acks=acks, now_ms=BASE_TIMESTAMP)

        append("orders", 1)
        append("others", -1)
        with pytest.raises(KafkaError) as raised:
            append("orders", -1)
        assert raised.value.code is ErrorCode.NOT_ENOUGH_REPLICAS
        await broker.context.controller.set_configs(ALL_BROKERS, {"min.insync.replicas": "1"})
        append("orders", -1)

    run_with_broker(tmp_path, scenario, {"min.insync.replicas": "2"})


@pytest.mark.parametrize(("text", "waits"), [("auto", True), ("leader", True), ("off", False)])
def test_acks_all_flush(tmp_path: Path, text: str, waits: bool) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await broker.create_topic("orders")
        partition = broker.context.partitions.get("orders", 0)
        assert partition.needs_fsync(acks=-1) == waits
        assert not partition.needs_fsync(acks=1)
        await broker.context.controller.set_configs(ALL_BROKERS, {"acks.all.flush": "off"})
        assert not partition.needs_fsync(acks=-1)

    run_with_broker(tmp_path, scenario, {"acks.all.flush": text})


def test_broker_ids_are_made_up_above_the_reserved_ones_and_kept(tmp_path: Path) -> None:
    texts = {
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "log.dirs": str(tmp_path),
        "reserved.broker.max.id": "5",
    }

    async def started_id() -> int:
        server = BrokerServer(static_of(texts))
        await server.start()
        try:
            assert server.settings.integer("broker.id") == server.context.node_id
            return server.context.node_id
        finally:
            await server.stop()

    first = asyncio.run(started_id())
    assert first > 5
    texts["reserved.broker.max.id"] = "1000"
    assert asyncio.run(started_id()) == first


async def threads_at_once(run_in_thread: RunInThread) -> int:
    """How many of many jobs run at the same time, where each waits a little for others."""
    running = 0
    most = 0
    lock = threading.Lock()
    others = threading.Event()

    def work() -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        others.wait(0.1)
        with lock:
            running -= 1

    await asyncio.gather(*(run_in_thread(work) for _ in range(12)))
    return most


@pytest.mark.parametrize("name", ["num.io.threads", "background.threads"])
def test_threads(tmp_path: Path, name: str) -> None:
    texts = {
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "log.dirs": str(tmp_path),
        "broker.id": "0",
        name: "2",
    }

    async def run() -> None:
        server = BrokerServer(static_of(texts))
        await server.start()
        try:
            requests = name == "num.io.threads"
            pool = server._request_pool if requests else server._background_pool
            assert await threads_at_once(pool.run) == 2
            await server.context.controller.set_configs(ALL_BROKERS, {name: "4"})
            assert await threads_at_once(pool.run) == 4
        finally:
            await server.stop()

    asyncio.run(run())


def test_how_long_silent_producers_are_remembered_follows_at_run_time(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        name = "producer.id.expiration.ms"
        await broker.create_topic("orders")
        await broker.context.controller.set_configs(ALL_BROKERS, {name: "5000"})
        await broker.create_topic("others")
        for topic in ("orders", "others"):
            states = broker.context.partitions.get(topic, 0).log.producer_states
            assert states.producer_id_expiration_ms == 5000

    run_with_broker(tmp_path, scenario)


def test_a_copy_on_its_way_follows_its_topics_settings(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await broker.create_topic("orders")
        partition = TopicPartition("orders", 0)
        directories = broker.context.directories
        (target,) = (
            each
            for each in directories.directories
            if each is not directories.directory_of(partition)
        )
        move = directories.moves.start(partition, target.path, BASE_TIMESTAMP)
        assert move is not None
        resource = ConfigResource(ResourceKind.TOPIC, "orders")
        await broker.context.controller.set_configs(resource, {"segment.ms": "7"})
        assert (move.current.config.segment_ms, move.log.config.segment_ms) == (7, 7)

    run_with_broker(tmp_path, scenario, {"log.dirs": f"{tmp_path}/one,{tmp_path}/two"})
