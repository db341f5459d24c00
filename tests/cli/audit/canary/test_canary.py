"""A canary on brokers: what is late is not lost, and what is deleted before it is read is."""

import asyncio
import contextlib
import json
import urllib.request
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from headwater.base.ids import TopicPartition
from headwater.cli.audit.canary import canary as canary_module
from headwater.cli.audit.canary.canary import Canary, CanaryOptions
from headwater.cli.audit.canary.ledger import BrokerFigures
from headwater.cli.audit.canary.report import metric_pieces
from headwater.cli.audit.metrics_page import metrics_page
from headwater.client.connection.cluster_connection import ClusterConnection
from headwater.testing.running_broker import RunningBroker
from tests.support.async_tests import run_async
from tests.support.brokers.broker_cluster import BrokerCluster, run_cluster_scenario
from tests.support.brokers.clusters import Cluster
from tests.support.command import run_command

TOPIC = "__audit_canary"
OPTIONS = CanaryOptions(TOPIC, interval_s=0.01, round_count=None, for_s=None, wait_s=30.0)


@contextlib.asynccontextmanager
async def a_canary(bootstrap: str, options: CanaryOptions = OPTIONS) -> AsyncIterator[Canary]:
    warnings: list[str] = []
    async with (
        ClusterConnection(bootstrap) as connection,
        Canary(connection, bootstrap, options, warnings.append) as canary,
    ):
        yield canary


def figures(canary: Canary) -> dict[int, BrokerFigures]:
    return {each.broker_id: each for each in canary.ledger.figures(0.0, 10.0)}


async def drain(canary: Canary) -> None:
    async with asyncio.timeout(60):
        while canary.ledger.outstanding_count:
            await canary.read()


def test_a_broker_that_dies_makes_records_late_and_none_of_them_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(canary_module, "_REQUEST_MS", 2_000)
    monkeypatch.setattr(canary_module, "_LOOK_S", 0.1)

    async def scenario(cluster: BrokerCluster) -> None:
        async with a_canary(cluster.bootstrap) as canary:
            running = asyncio.ensure_future(canary.run())
            await cluster.until(lambda: min(each.received for each in figures(canary).values()) > 5)
            assert sorted(figures(canary)) == [1, 2, 3]
            [led] = [number for number in range(3) if cluster.leader_of(TOPIC, number) == 3]
            # It answers nobody any more, and its session ends.
            cluster.silence(3)
            await cluster.expire(3)
            await cluster.until(lambda: cluster.leader_of(TOPIC, led) in (1, 2))
            before = {number: each.received for number, each in figures(canary).items()}
            taken_over = cluster.leader_of(TOPIC, led)
            await cluster.until(
                lambda: figures(canary)[taken_over].received > before[taken_over] + 20
            )
            running.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await running
            await drain(canary)
            for each in figures(canary).values():
                assert (each.lost, each.doubled, each.outstanding) == (0, 0, 0)
                assert each.received >= each.sent - each.failed

    run_cluster_scenario(tmp_path, scenario)


def test_a_broker_that_comes_gets_a_partition(tmp_path: Path) -> None:
    async def scenario(cluster: BrokerCluster) -> None:
        await cluster.stop(3)
        async with a_canary(cluster.bootstrap) as canary:
            await canary.look()
            assert [each.replicas for each in cluster.image.topics[TOPIC].partitions] == [
                (1, 2),
                (2, 1),
            ]
            await cluster.start(3)
            await canary.look()
            assert cluster.leader_of(TOPIC, 2) == 3
            async with asyncio.timeout(30):
                while 3 not in figures(canary) or figures(canary)[3].sent == 0:
                    await canary.look()
                    await canary.send_round()
            await drain(canary)
            assert figures(canary)[3].received == figures(canary)[3].sent

    run_cluster_scenario(tmp_path, scenario)


def test_what_is_deleted_before_it_is_read_is_lost(cluster: Cluster) -> None:
    @run_async
    async def scenario() -> None:
        async with a_canary(cluster.bootstrap) as canary:
            await canary.look()
            await canary.send_round()
            await drain(canary)
            partition = TopicPartition(TOPIC, 0)
            begun = await canary._consumer.position(partition)
            for _ in range(5):
                await canary.send_round()
            await canary._producer.flush()
            await canary._admin.delete_records({partition: begun + 3})
            # Nobody has polled yet, and what was fetched ahead is forgotten.
            canary._consumer.seek(partition, begun)
            await drain(canary)
            [found] = figures(canary).values()
            assert (found.sent, found.received, found.lost, found.doubled) == (6, 3, 3, 0)
            async with metrics_page(("127.0.0.1", 0), lambda: metric_pieces([found])) as port:
                page = await asyncio.to_thread(fetch, port)
            assert f'headwater_canary_lost{{broker="{cluster.broker_id}"}} 3' in page

    scenario()


def fetch(port: int) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        page: bytes = answer.read()
        return page.decode()


def test_the_command_sends_reads_and_tells(cluster: Cluster) -> None:
    arguments = ("audit", "canary", "-b", cluster.bootstrap, "--interval", "1ms", "--count", 5)
    told = run_command(*arguments)
    assert (told.exit_code, told.stderr) == (0, "")
    assert told.lines[1].split()[:4] == ["BROKER", "SENT", "RECEIVED", "LOST"]
    assert told.lines[2].split()[:5] == [str(cluster.broker_id), "5", "5", "0", "0"]
    found = json.loads(run_command(*arguments, "--json").stdout)
    assert (found["sent"], found["received"], found["lost"], found["doubled"]) == (5, 5, 0, 0)


def test_what_was_wrong_decides_the_exit_code(monkeypatch: pytest.MonkeyPatch) -> None:
    async def read_nothing(canary: Canary) -> None:
        await asyncio.sleep(0.01)

    with RunningBroker() as broker:
        arguments = ("audit", "canary", "-b", broker.bootstrap, "--count", 2, "--interval", "1ms")
        monkeypatch.setattr(Canary, "read", read_nothing)
        told = run_command(*arguments, "--wait", "50ms")
        assert told.exit_code == 1
        assert "not known to be lost" in told.lines[-1]

        async def pass_by(canary: Canary) -> None:
            canary.ledger.passed(0, 1)
            await asyncio.sleep(0.01)

        monkeypatch.setattr(Canary, "read", pass_by)
        told = run_command(*arguments, "--wait", "500ms", "--topic", "other")
        assert told.exit_code == 3
        assert told.lines[-2].startswith("1 record sent through broker")


@pytest.mark.parametrize(
    "wrong", [("--interval", "0"), ("--for", "soon"), ("--metrics-listen", "nowhere")]
)
def test_options_that_make_no_sense_are_told(wrong: tuple[str, str]) -> None:
    told = run_command("audit", "canary", *wrong, "-b", "127.0.0.1:1")
    assert told.exit_code == 2
