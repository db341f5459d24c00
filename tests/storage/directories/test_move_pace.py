"""Moves between the directories of a broker keep to a rate, and go on when there is room."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from headwater.base.clocks import ManualClock
from headwater.sim.campaigns.broker_logs import TOPIC_ID, append, open_directories, orders
from headwater.sim.campaigns.logs import NOW_MS
from headwater.sim.clock import SimulatedClock
from headwater.sim.disk.faulty_disk import FaultyDisk
from headwater.sim.virtual_loop import VirtualLoop
from headwater.storage.directories.future_log import FutureLog
from headwater.storage.directories.log_directories import LogDirectories
from headwater.storage.directories.maintenance import Maintenance
from headwater.storage.directories.move_pace import MovePace
from headwater.storage.directories.periodic_tasks import run_periodically
from headwater.storage.log_config import LONG_MAX
from headwater.storage.log_settings import LOG_SETTINGS
from headwater.storage.partition_log import PartitionLog

T = TypeVar("T")

PATHS = ["/a", "/b"]


def two_directories() -> LogDirectories:
    directories = open_directories(FaultyDisk(directories=PATHS), PATHS)
    directories.create(orders(0), TOPIC_ID, NOW_MS)
    return directories


def started(directories: LogDirectories, log: PartitionLog) -> FutureLog:
    (there,) = [each for each in directories.directories if log.partition not in each.logs]
    move = directories.moves.start(log.partition, there.path, NOW_MS)
    assert move is not None
    return move


async def run_here(work: Callable[[], T]) -> T:
    return work()


def test_moves_keep_to_their_rate() -> None:
    clock = ManualClock()
    limit = 2000
    directories = two_directories()
    maintenance = Maintenance(directories, LOG_SETTINGS.defaults(), MovePace(lambda: limit, clock))
    [log] = directories
    for _ in range(60):
        append(log, bytes(500))
    log.raise_high_watermark(log.log_end_offset)
    move = started(directories, log)
    ends = []
    for _ in range(3):
        maintenance.tasks["moves"].run_now(NOW_MS)
        ends.append(move.log.log_end_offset)
        clock.advance(3000)
    assert 0 < ends[0] < ends[1] < ends[2] < 60
    assert move.lag > 0, "progress, as DescribeLogDirs tells it"
    limit = LONG_MAX
    maintenance.tasks["moves"].run_now(NOW_MS)
    assert not directories.moves
    assert directories.directory_of(log.partition) is move.target


def test_a_move_that_waits_goes_on_by_itself() -> None:
    loop = VirtualLoop()
    clock = SimulatedClock(loop)
    directories = two_directories()
    maintenance = Maintenance(directories, LOG_SETTINGS.defaults(), MovePace(lambda: 1000, clock))
    [log] = directories
    for _ in range(20):
        append(log, bytes(1000))
    log.raise_high_watermark(log.log_end_offset)
    started(directories, log)

    async def scenario() -> None:
        stop = asyncio.Event()
        running = asyncio.ensure_future(
            run_periodically([maintenance.tasks["moves"]], stop, clock, run_here)
        )
        begun_s = loop.time()
        while directories.moves:
            assert loop.time() < begun_s + 300
            await asyncio.sleep(0.1)
        # The first second's worth and what its task waits for before it begins count too.
        assert 15 < loop.time() - begun_s < 80
        stop.set()
        await running

    loop.run_until_complete(scenario())
    loop.close()
