"""/health and /ready, through the life of a broker."""

import asyncio
import json
from pathlib import Path

import pytest

from headwater.base.background_tasks import BackgroundTasks
from headwater.base.clocks import Clock
from headwater.base.ids import TopicPartition
from headwater.base.threads import RunInThread
from headwater.broker import server as server_module
from headwater.broker.environment import BrokerEnvironment, open_store
from headwater.broker.metrics.health import HEALTH, READY, BrokerHealth
from headwater.broker.server import BrokerServer
from headwater.broker.settings.broker_settings import BrokerSettings
from headwater.broker.settings.static_settings import static_of
from headwater.cluster.member import ClusterMember
from headwater.cluster.store.metadata_store import StoreConnector
from headwater.net.endpoint import split_address
from headwater.storage.directories.log_directory import LoadProgress
from tests.support.brokers.running_broker import RunningBroker, broker_settings, run_broker_scenario

WELL = (200, {"status": "healthy"})


async def ask(server: BrokerServer, path: str, method: str = "GET") -> tuple[int, object]:
    """The status and the body that a probe gets."""
    assert server.metrics_address is not None
    reader, writer = await asyncio.open_connection(*split_address(server.metrics_address))
    writer.write(f"{method} {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    head, _, body = (await reader.read()).decode().partition("\r\n\r\n")
    writer.close()
    await writer.wait_closed()
    if path in (HEALTH, READY):
        assert "Content-Type: application/json\r\n" in head
        assert method == "HEAD" or body.endswith("}\n")
    is_json = body.startswith("{")
    return int(head.split()[1]), json.loads(body) if is_json else body


def not_ready(*reasons: str) -> tuple[int, object]:
    return 503, {"status": "not ready", "reasons": list(reasons)}


def test_a_broker_starts_serves_and_stops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        may_open, may_stop = asyncio.Event(), asyncio.Event()

        async def open_late(
            settings: BrokerSettings, directory: str, clock: Clock, run_in_thread: RunInThread
        ) -> StoreConnector:
            await may_open.wait()
            return await open_store(settings, directory, clock, run_in_thread)

        async def stop_late(_: object) -> None:
            await may_stop.wait()

        monkeypatch.setattr(server_module, "hand_over_leaderships", stop_late)
        texts = broker_settings(tmp_path, {"metrics.listen": "127.0.0.1:0"})
        server = BrokerServer(static_of(texts), BrokerEnvironment(open_store=open_late))
        starting = asyncio.create_task(server.start())
        async with asyncio.timeout(30):
            while server.metrics_address is None or not server.health.obstacles()[0].endswith(
                "store."
            ):
                await asyncio.sleep(0)
        assert await ask(server, READY) == not_ready("The broker waits for its metadata store.")
        assert await ask(server, HEALTH) == WELL
        assert await ask(server, "/metrics") == (503, "The broker starts.\n")
        may_open.set()
        await starting
        assert await ask(server, READY) == (200, {"status": "ready"})
        assert await ask(server, READY + "?verbose", "HEAD") == (200, "")
        assert await ask(server, HEALTH) == WELL
        assert (await ask(server, "/metrics"))[0] == 200
        assert (await ask(server, "/readyz"))[0] == 404
        stopping = asyncio.create_task(server.stop())
        await asyncio.sleep(0)
        assert await ask(server, READY) == not_ready("The broker stops.")
        assert await ask(server, HEALTH) == WELL
        may_stop.set()
        await stopping

    asyncio.run(run())


def test_what_it_does_while_it_starts_is_told() -> None:
    async def run() -> None:
        health = BrokerHealth(BackgroundTasks())
        assert health.obstacles() == ["The broker starts."]
        health.loads(LoadProgress(3, 12, TopicPartition("a", 1), is_recovering=False))
        assert health.obstacles() == ["The broker loads its logs: 3 of 12 are done."]
        health.loads(LoadProgress(4, 12, TopicPartition("a", 2), is_recovering=True))
        assert health.obstacles() == ["The broker recovers its logs: 4 of 12 are done."]
        health.joins()
        assert health.obstacles() == ["The broker joins the cluster."]
        assert health.faults() == []

    asyncio.run(run())


def test_a_broker_that_cannot_go_on_is_not_well(tmp_path: Path) -> None:
    async def scenario(broker: RunningBroker) -> None:
        server, context = broker.server, broker.server.context

        async def fail() -> None:
            raise ValueError("broken")

        context.background.start("a part", fail())
        await server.wait_failed()
        reason = "The task 'a part' of the broker failed: ValueError('broken')."
        told = {"status": "not healthy", "reasons": [reason]}
        assert await ask(server, HEALTH) == (503, told)
        assert await ask(server, READY) == not_ready(reason)

    run_broker_scenario(tmp_path, scenario, {"metrics.listen": "127.0.0.1:0"})


def test_a_broker_without_its_session_or_a_disk_is_not_ready(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directories = [str(tmp_path / name) for name in ("a", "b")]

    async def scenario(broker: RunningBroker) -> None:
        server = broker.server
        with monkeypatch.context() as cut_off:
            cut_off.setattr(ClusterMember, "has_session", False)
            reason = "The broker has no session with the metadata store."
            assert await ask(server, READY) == not_ready(reason)
        with monkeypatch.context() as late:
            late.setattr(ClusterMember, "is_up_to_date", False)
            reason = "The controller has not answered the broker's registration yet."
            assert await ask(server, READY) == not_ready(reason)
        assert (await ask(server, READY))[0] == 200
        server.context.directories.directories[1].go_offline("Input/output error")
        reason = f"The log directory {directories[1]} is offline: Input/output error."
        assert await ask(server, READY) == not_ready(reason)
        assert await ask(server, HEALTH) == WELL

    settings = {"metrics.listen": "127.0.0.1:0", "log.dirs": ",".join(directories)}
    run_broker_scenario(tmp_path, scenario, settings)
