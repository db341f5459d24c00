"""Random use of ZooKeeper over lines that are cut at random, checked against what must hold.

Several sessions append tokens to one node, each on condition of the version that it read. A token
whose append was acknowledged is in the node once, one that was refused is not, and one of unknown
fate is there at most once. A session that only watches sees every state that stays long enough, and
in the end the last one.
"""

import asyncio
import contextlib
import random

import pytest
import uvloop

from headwater.cluster.store.errors import BadVersionError, UncertainWriteError
from headwater.cluster.store.metadata_store import WatchEvent
from headwater.cluster.store.zookeeper.connector import ZooKeeperConnector
from headwater.cluster.store.zookeeper.store import ZooKeeperStore
from tests.support.brokers.zookeeper import fresh_chroot, shared_zookeeper
from tests.support.fakes.peers.store_line import StoreLine
from tests.support.tiers import rounds

NAMES = "abc"
WRITERS = len(NAMES)
LAST = b"end"
APPENDS = 40
LIMIT_S = 120.0


class History:
    def __init__(self) -> None:
        self.acknowledged: list[str] = []
        self.refused: list[str] = []
        self.uncertain: list[str] = []
        self.seen: list[bytes] = []


async def _append(store: ZooKeeperStore, name: str, history: History) -> None:
    for number in range(APPENDS):
        token = f"{name}{number}"
        node = await store.get("/list")
        data = node.data + token.encode() + b" "
        try:
            assert await store.set("/list", data, node.version) == node.version + 1
            history.acknowledged.append(token)
        except BadVersionError:
            history.refused.append(token)
        except UncertainWriteError:
            history.uncertain.append(token)


async def _follow(store: ZooKeeperStore, history: History) -> None:
    """Read whenever the watch was called, as a broker follows a node."""
    while True:
        changes: asyncio.Queue[WatchEvent] = asyncio.Queue()
        history.seen.append((await store.get("/list", changes.put_nowait)).data)
        if history.seen[-1].endswith(LAST):
            return
        await changes.get()


async def _disturb(lines: list[StoreLine], generator: random.Random) -> None:
    while True:
        await asyncio.sleep(generator.uniform(0.02, 0.15))
        line = generator.choice(lines)
        match generator.randrange(4):
            case 0:
                line.hold_answers()
            case 1:
                line.hold_requests()
            case 2:
                line.cut()
            case 3:
                line.release()


async def _run(seed: int) -> History:
    history = History()
    chroot = fresh_chroot()
    async with asyncio.timeout(LIMIT_S), contextlib.AsyncExitStack() as stack:
        stores: list[ZooKeeperStore] = []
        lines: list[StoreLine] = []
        for _ in range(WRITERS + 1):
            line = await stack.enter_async_context(StoreLine(shared_zookeeper().address))
            connector = ZooKeeperConnector(f"{line.address}{chroot}")
            stack.push_async_callback(connector.close)
            lines.append(line)
            stores.append(await connector.connect())
        await stores[0].create("/list", b"")
        follower = asyncio.create_task(_follow(stores[-1], history))
        trouble = asyncio.create_task(_disturb(lines, random.Random(seed)))
        writers = zip(NAMES, stores[:WRITERS], strict=True)
        await asyncio.gather(*(_append(store, name, history) for name, store in writers))
        trouble.cancel()
        for line in lines:
            line.release()
        node = await stores[0].get("/list")
        await stores[1].set("/list", node.data + LAST)
        await follower
    return history


@pytest.mark.parametrize("seed", range(rounds(2, 20)))
def test_nothing_is_lost_doubled_or_unseen(seed: int) -> None:
    # The broker's own kind of loop, on which the order of callbacks must be the same.
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        history = runner.run(_run(seed))
    tokens = history.seen[-1].decode().split()[:-1]
    assert len(tokens) == len(set(tokens))
    # What was acknowledged is there in the order of its writer.
    for name in NAMES:
        own = [token for token in history.acknowledged if token.startswith(name)]
        assert own == [token for token in tokens if token in set(own)]
    assert not set(history.refused) & set(tokens)
    assert set(tokens) <= set(history.acknowledged) | set(history.uncertain)
    # The one who follows sees the node grow, never anything that was taken back.
    for before, after in zip(history.seen, history.seen[1:], strict=False):
        assert after.startswith(before)
    assert len(history.acknowledged) > WRITERS
