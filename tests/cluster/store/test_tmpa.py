import asyncio, sys, time, uvloop, random
sys.path.insert(0,'/work/main')
from tests.support.zookeeper import *
from tests.support.store_line import StoreLine
from headwater.cluster.store.zookeeper_connector import ZooKeeperConnector
from tests.cluster.store.test_zookeeper_histories import _append, _disturb, History, WRITERS
async def _follow(store, history):
    while not history.seen or not history.seen[-1].endswith(b"end"):
        ch=asyncio.Queue()
        node = await store.get("/list", ch.put_nowait)
        history.seen.append(node.data)
        await ch.get()
async def main(seed=0):
    generator = random.Random(seed)
    history = History()
    chroot = fresh_chroot()
    lines = [StoreLine(shared_zookeeper().address) for _ in range(WRITERS + 1)]
    async with asyncio.timeout(12):
        for line in lines:
            await line.__aenter__()
        connectors = [ZooKeeperConnector(f"{line.address}{chroot}") for line in lines]
        stores = [await connector.connect() for connector in connectors]
        await stores[0].create("/list", b"")
        follower = asyncio.create_task(_follow(stores[-1], history))
        trouble = asyncio.create_task(_disturb(lines, generator))
        await asyncio.gather(
            *(_append(store, "abc"[n], history) for n, store in enumerate(stores[:WRITERS]))
        )
        trouble.cancel()
        for line in lines:
            line.release()
        node = await stores[0].get("/list")
        await stores[1].set("/list", node.data + b"end")
        print('follow', flush=True)
        await follower

def test_x():
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as r: r.run(main())
