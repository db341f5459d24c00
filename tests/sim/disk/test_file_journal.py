import asyncio
from random import Random

import pytest

from headwater.cluster.store.embedded.journal import JournalContent, NodeRow
from headwater.cluster.store.errors import StoreWriteError
from headwater.sim.campaigns.broker_logs import run_inline
from headwater.sim.disk.faults import SYNCS, Fault, PowerCut, SimulatedCrash
from headwater.sim.disk.faulty_disk import FaultyDisk
from headwater.sim.disk.file_journal import FileJournal
from headwater.sim.virtual_loop import VirtualLoop
from tests.support.tiers import rounds


def row(path: str, data: bytes, version: int = 0) -> NodeRow:
    return NodeRow(path, data, version, 1, 2, 3, 4)


async def load(disk: FaultyDisk) -> tuple[FileJournal, JournalContent]:
    journal = FileJournal(disk, "/data", run_inline)
    return journal, await journal.load()


def test_what_was_committed_is_loaded_with_parents_first() -> None:
    async def run() -> None:
        disk = FaultyDisk(1)
        journal, content = await load(disk)
        assert (list(content.rows), content.transaction_id) == ([], 0)
        await journal.commit({"/b/a": row("/b/a", b"\xff\x00"), "/b": row("/b", b"")}, 1)
        await journal.commit({"/c": row("/c", b"x"), "/": row("/", b"")}, 2)
        await journal.commit({"/c": None, "/b": row("/b", b"new", 7)}, 9)
        await journal.close()
        _, content = await load(disk)
        assert list(content.rows) == [row("/", b""), row("/b", b"new", 7), row("/b/a", b"\xff\x00")]
        assert content.transaction_id == 9

    asyncio.run(run())


def test_every_commit_that_returned_survives_a_power_cut_and_none_is_torn() -> None:
    async def run(seed: int) -> None:
        rng = Random(seed)
        disk = FaultyDisk(seed)
        committed = 0
        for _ in range(6):
            disk.before_operation = PowerCut(rng.randrange(15))
            try:
                journal, _ = await load(disk)
                while True:
                    number = committed + 1
                    changes = {f"/{number}": row(f"/{number}", b"x" * rng.randrange(900))}
                    await journal.commit(changes | {"/last": row("/last", b"%d" % number)}, number)
                    committed = number
            except SimulatedCrash:
                disk = disk.crash(rng)
            _, content = await load(disk)
            rows = {each.path: each for each in content.rows}
            assert content.transaction_id in (committed, committed + 1)
            committed = content.transaction_id
            assert set(rows) == {f"/{n}" for n in range(1, committed + 1)} | (
                {"/last"} if committed else set()
            )
            assert committed == 0 or rows["/last"].data == b"%d" % committed

    for seed in range(rounds(small=30, full=300)):
        loop = VirtualLoop()
        loop.run_until_complete(run(seed))
        loop.close()


def test_after_a_failed_sync_nothing_is_taken_any_more() -> None:
    async def run() -> None:
        disk = FaultyDisk(1)
        journal, _ = await load(disk)
        disk.faults.append(Fault(operations=SYNCS, hit_count_max=1))
        with pytest.raises(StoreWriteError, match="cannot be synced"):
            await journal.commit({"/a": row("/a", b"")}, 1)
        with pytest.raises(StoreWriteError, match="takes no more"):
            await journal.commit({"/a": row("/a", b"")}, 2)

    asyncio.run(run())


def test_a_disk_that_was_full_is_used_again_when_it_has_room() -> None:
    async def run() -> None:
        disk = FaultyDisk(1)
        journal, _ = await load(disk)
        disk.capacity_bytes = disk.used_bytes + 40
        for _ in range(3):
            with pytest.raises(StoreWriteError, match="cannot be written"):
                await journal.commit({"/a": row("/a", b"x" * 500)}, 1)
        disk.capacity_bytes = None
        await journal.commit({"/b": row("/b", b"")}, 2)
        _, content = await load(disk)
        assert [each.path for each in content.rows] == ["/b"]

    asyncio.run(run())
