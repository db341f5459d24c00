"""Sessions with an ensemble of which servers die or fall silent."""

import asyncio
from pathlib import Path

import pytest

from headwater.cluster.store.errors import NodeExistsError, UncertainWriteError
from headwater.cluster.store.metadata_store import WatchEvent, WatchKind
from headwater.cluster.store.zookeeper.connector import ZooKeeperConnector
from headwater.cluster.store.zookeeper.store import ZooKeeperStore
from headwater.zookeeper.server import ZooKeeperServer
from tests.support.async_tests import run_async
from tests.support.brokers.zookeeper import zookeeper_ensemble

LIMIT_S = 120.0


async def _create(store: ZooKeeperStore, path: str) -> None:
    """Make a node, however often that takes; who wrote looks whether an uncertain one was made."""
    while True:
        try:
            await store.create(path, b"", ephemeral=True)
            return
        except UncertainWriteError:
            continue
        except NodeExistsError:
            return


def _connected_server(servers: list[ZooKeeperServer], store: ZooKeeperStore) -> ZooKeeperServer:
    """The one that the store's session is with, as the servers tell."""
    [server] = [
        server for server in servers if f"sid={store.session_id:#x}" in (server.ask("cons") or "")
    ]
    return server


@run_async
async def test_a_session_survives_its_server_and_any_single_one(tmp_path: Path) -> None:
    ensemble = zookeeper_ensemble(tmp_path)
    with ensemble:
        connector = ZooKeeperConnector(f"{ensemble.address}/cluster", session_timeout_ms=8_000)
        watching = ZooKeeperConnector(f"{ensemble.address}/cluster", session_timeout_ms=8_000)
        async with asyncio.timeout(LIMIT_S):
            store, other = await connector.connect(), await watching.connect()
            session_id = store.session_id
            expired: list[str] = []
            store.on_expired(lambda: expired.append("store"))
            other.on_expired(lambda: expired.append("other"))
            await store.create("/mine", b"", ephemeral=True)
            fired: list[WatchEvent] = []
            await other.exists("/new", fired.append)
            # First the one that the session is with, which ends; then one that only falls silent.
            server = _connected_server(ensemble.servers, store)
            server.kill()
            await _create(store, "/after-kill")
            assert (await store.get("/mine")).ephemeral_owner == session_id
            server.start()
            silent = _connected_server(ensemble.servers, store)
            silent.pause()
            try:
                await _create(store, "/new")
                assert (await store.get("/mine")).ephemeral_owner == session_id
                while not fired:
                    await asyncio.sleep(0.05)
            finally:
                silent.resume()
            assert fired == [(WatchKind.CREATED, "/new")]
            assert expired == []
            await connector.close()
            while await other.exists("/mine") is not None:
                await asyncio.sleep(0.05)
            await watching.close()


@pytest.mark.full
@run_async
async def test_sessions_survive_the_end_of_the_whole_ensemble(tmp_path: Path) -> None:
    ensemble = zookeeper_ensemble(tmp_path)
    with ensemble:
        connector = ZooKeeperConnector(ensemble.address, session_timeout_ms=60_000)
        async with asyncio.timeout(LIMIT_S):
            store = await connector.connect()
            await store.create("/mine", b"", ephemeral=True)
            ensemble.kill()
            ensemble.start()
            assert (await store.get("/mine")).ephemeral_owner == store.session_id
            await connector.close()
