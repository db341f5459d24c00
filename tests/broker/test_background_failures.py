"""A part of the broker fails though nobody expected it: the broker says so and stops, or goes on.

Each test plants an exception in one kind of long-lived task. Where the broker is to stop, it must
be able to: whoever waited for the part that is gone must not hold it up.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from headwater.base.background_tasks import BackgroundTaskError
from headwater.base.errors import KafkaError
from headwater.base.ids import TopicPartition
from headwater.broker import server
from headwater.broker.peers.leader_rebalancing import LeaderRebalancing
from headwater.broker.server import BrokerServer
from headwater.broker.settings.static_settings import static_of
from headwater.broker.start.faults import StartError
from headwater.broker.topics.coordinator_topics import CoordinatorKind
from headwater.broker.transactions.markers import MarkerSender
from headwater.cli.serve.broker_log import LogOptions
from headwater.cli.serve.broker_process import run_broker
from headwater.cluster.brokers.changes import BrokerChanges
from headwater.cluster.image.distribution import ImageDistribution
from headwater.cluster.member import ClusterMember
from headwater.cluster.session_lease import SessionLease
from headwater.coordinator.group.offsets.commit import NewOffset
from headwater.coordinator.shard_log import ShardLog
from headwater.replication.following.fetcher import ReplicaFetcher
from headwater.replication.leading.isr_changes import IsrChanges
from headwater.replication.partition.partitions import Partitions
from headwater.storage.compaction.cleaner import Cleaner
from headwater.storage.directories.maintenance import Maintenance
from headwater.storage.flush import SharedFsync
from tests.support.brokers.broker_cluster import BrokerCluster, run_cluster_scenario
from tests.support.brokers.running_broker import RunningBroker, broker_settings, run_broker_scenario
from tests.support.worlds.offset_world import OUTSIDER

_LIMIT_S = 20.0
_SENTENCE = "The task {!r} of the broker failed: ValueError('planted')."


async def planted(*_: object, **__: object) -> None:
    raise ValueError("planted")


async def failure_of(broker: BrokerServer) -> str:
    async with asyncio.timeout(_LIMIT_S):
        failure = await broker.wait_failed()
    assert isinstance(failure, BackgroundTaskError)
    return str(failure)


def failure_of_life(directory: Path, settings: dict[str, str] | None = None) -> str:
    """Why a broker stopped, or could not even start."""

    async def run() -> str:
        broker = BrokerServer(static_of(broker_settings(directory, settings)))
        try:
            await broker.start()
        except StartError as error:
            return str(error)
        try:
            return await failure_of(broker)
        finally:
            await broker.stop()

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("part", "method", "task"),
    [
        (Maintenance, "run", "log maintenance"),
        (Cleaner, "clean_filthiest", "log cleaner"),
        (LeaderRebalancing, "_look", "leader rebalancing"),
        (SessionLease, "keep", "session lease"),
    ],
)
def test_what_runs_all_the_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: type, method: str, task: str
) -> None:
    monkeypatch.setattr(part, method, planted)
    settings = {"leader.imbalance.check.interval.seconds": "1"}
    assert failure_of_life(tmp_path, settings) == _SENTENCE.format(task)


def test_the_feed_of_an_image(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(broker: RunningBroker) -> None:
        monkeypatch.setattr(ImageDistribution, "send", planted)
        creating = asyncio.ensure_future(broker.create_topic("orders"))
        expected = _SENTENCE.format("image feed of broker 0")
        assert await failure_of(broker.server) == expected
        # Nobody waits for a broker that hears nothing.
        await asyncio.wait({creating}, timeout=_LIMIT_S)
        assert creating.done()
        creating.exception()

    run_broker_scenario(tmp_path, scenario)
    assert (tmp_path / ".kafka_cleanshutdown").exists()


def test_a_broker_that_fails_while_it_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ImageDistribution, "send", planted)

    async def run() -> None:
        with pytest.raises(StartError) as told:
            async with asyncio.timeout(_LIMIT_S):
                await BrokerServer(static_of(broker_settings(tmp_path))).start()
        assert str(told.value) == _SENTENCE.format("image feed of broker 0")

    asyncio.run(run())


def test_the_membership_in_the_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(broker: RunningBroker) -> None:
        monkeypatch.setattr(ClusterMember, "_consider", planted)
        broker.server.context.member._depose()
        assert await failure_of(broker.server) == _SENTENCE.format("membership in the cluster")

    run_broker_scenario(tmp_path, scenario)


def test_the_fsyncs_of_a_partition(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Requests that wait are given so long to be answered.
    monkeypatch.setattr(server, "_ANSWER_GRACE_S", 0.1)

    async def scenario(broker: RunningBroker) -> None:
        await broker.create_topic("orders")
        await broker.produce("orders", [b"safe"], acks=-1)
        monkeypatch.setattr(SharedFsync, "_sync_once", planted)
        producing = asyncio.ensure_future(broker.produce("orders", [b"unsafe"], acks=-1))
        assert await failure_of(broker.server) == _SENTENCE.format("fsyncs of orders-0")
        await broker.server.stop()
        # It is answered, with an error, or the connection ends.
        await asyncio.wait({producing}, timeout=_LIMIT_S)
        assert producing.done()
        assert producing.exception() is not None or producing.result().error_code

    run_broker_scenario(tmp_path, scenario, {"acks.all.flush": "leader"})


def test_the_way_to_the_controller_for_other_isrs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(cluster: BrokerCluster) -> None:
        await cluster.create_topic("orders", [[1, 2, 3]])
        await cluster.until_in_sync("orders")
        monkeypatch.setattr(IsrChanges, "_send", planted)
        # In order it would have been taken out of the ISR by the controller.
        cluster.silence(3)
        await cluster.expire(3)
        assert await failure_of(cluster.servers[1]) == _SENTENCE.format("ISR changes")

    run_cluster_scenario(tmp_path, scenario, {"replica.lag.time.max.ms": "1000"})


def test_the_markers_of_transactions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MarkerSender, "_send", planted)

    async def scenario(broker: RunningBroker) -> None:
        context = broker.server.context
        sender = MarkerSender(context, lambda: context.image)
        sender._enqueue(0, object(), TopicPartition("orders", 0))  # type: ignore[arg-type]
        assert await failure_of(broker.server) == _SENTENCE.format("transaction markers")
        await sender.close()

    run_broker_scenario(tmp_path, scenario)


# -- what begins again -----------------------------------------------------------------------------


def test_a_controller_that_fails_is_followed_by_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(broker: RunningBroker) -> None:
        member = broker.server.context.member
        first = member.controller
        with monkeypatch.context() as patch:
            patch.setattr(BrokerChanges, "work_off", planted)
            first._brokers.look_again()
            await asyncio.wait(first._tasks)
        async with asyncio.timeout(_LIMIT_S):
            while not (member.is_controller and member.controller is not first):
                await asyncio.sleep(0.005)
        await broker.create_topic("orders")
        assert "planted" in caplog.text

    run_broker_scenario(tmp_path, scenario)


def test_followers_and_looks_at_in_sync_replicas_try_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    fetch, look = ReplicaFetcher._round, Partitions.check_isr
    left = {"fetch": 3, "look": 3}

    def fail_some(name: str) -> None:
        left[name] -= 1
        if left[name] >= 0:
            raise ValueError(f"planted in {name}")

    async def round_or_fail(fetcher: ReplicaFetcher) -> None:
        fail_some("fetch")
        await fetch(fetcher)

    def look_or_fail(partitions: Partitions) -> None:
        fail_some("look")
        look(partitions)

    monkeypatch.setattr(ReplicaFetcher, "_round", round_or_fail)
    monkeypatch.setattr(Partitions, "check_isr", look_or_fail)

    async def scenario(cluster: BrokerCluster) -> None:
        await cluster.create_topic("orders", [[1, 2, 3]])
        await cluster.until_in_sync("orders")
        await cluster.until(lambda: max(left.values()) < 0)
        assert "planted in fetch" in caplog.text
        assert "planted in look" in caplog.text
        for each in cluster.servers.values():
            assert not each._background._has_failed.is_set()

    run_cluster_scenario(tmp_path, scenario, {"replica.lag.time.max.ms": "300"})


def test_a_coordinator_that_cannot_be_loaded_costs_its_partition(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    settings = {
        "offsets.topic.num.partitions": "1",
        "offsets.topic.replication.factor": "1",
    }

    async def commit(broker: RunningBroker, topic: str) -> None:
        context = broker.server.context
        await broker.create_topic(topic)
        await context.coordinator_topics.ensure(CoordinatorKind.GROUP)
        offset = NewOffset(TopicPartition(topic, 0), 1)
        await context.groups.write(
            "g",
            lambda shard, now_ms: shard.offsets.commit(
                "g", OUTSIDER, [offset], now_ms, api_version=9
            ),
        )

    async def fail(broker: RunningBroker) -> None:
        await broker.server.context.groups.loaded()
        with pytest.raises(KafkaError):
            await commit(broker, "invoices")
        # It would cost each broker that leads the partition next, too, so this one goes on.
        assert (await broker.produce("invoices", [b"taken"])).error_code == 0
        assert not broker.server._background._has_failed.is_set()
        assert "__consumer_offsets-0 could not be loaded: planted" in caplog.text

    run_broker_scenario(tmp_path, lambda broker: commit(broker, "orders"), settings)
    with monkeypatch.context() as patch:
        patch.setattr(ShardLog, "replay_into", planted)
        run_broker_scenario(tmp_path, fail, settings)
    # And whoever loads it in order has it again.
    run_broker_scenario(tmp_path, lambda broker: commit(broker, "returns"), settings)


def test_the_broker_that_failed_ends_its_process_with_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Cleaner, "clean_filthiest", planted)
    assert run_broker(static_of(broker_settings(tmp_path)), LogOptions("CRITICAL")) == 1
    told = capsys.readouterr()
    assert told.err == f"headwater: {_SENTENCE.format('log cleaner')} The broker stops.\n"
    assert told.out.splitlines()[-1] == "Headwater has stopped."
    assert (tmp_path / ".kafka_cleanshutdown").exists()


def test_logs_that_could_not_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(broker: RunningBroker) -> None:
        partitions = broker.server.context.partitions
        monkeypatch.setattr(Partitions, "_try_unmade", planted)
        partitions._make_unmade()
        assert await failure_of(broker.server) == _SENTENCE.format("making of logs")
        partitions._retry = None

    run_broker_scenario(tmp_path, scenario)
