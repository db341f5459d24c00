"""What a broker gets from the world: disk, clocks, randomness, threads and a metadata store.

A real broker gets the operating system's. The simulator gives it a disk that fails, virtual time
and a seeded generator; the broker does not notice. Sockets are the event loop's, which is the
simulator's own there.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from headwater.base.clocks import Clock, SystemClock
from headwater.base.ids import TopicPartition
from headwater.base.randomness import SeededRandom
from headwater.base.threads import RunInThread
from headwater.broker.settings.broker_settings import BrokerSettings
from headwater.cluster.store.embedded.sqlite_journal import METADATA_FILE, SqliteJournal
from headwater.cluster.store.embedded.store import EmbeddedConnector, EmbeddedStore
from headwater.cluster.store.metadata_store import StoreConnector
from headwater.delay.dead_letters.moves import MoveSession
from headwater.storage.compaction.cleaner import RunJob
from headwater.storage.disk.disk_files import DiskFiles
from headwater.storage.disk.files import FileSystem

#: As many random bytes as asked for, which nobody can guess.
DrawBytes = Callable[[int], bytes]

_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")

#: Opens the way to the metadata store of a broker whose first data directory this is.
OpenStore = Callable[[BrokerSettings, str, Clock, RunInThread], Awaitable[StoreConnector]]

#: Opens a session that moves dead letters of a partition, through a broker at an address.
OpenMoveSession = Callable[[str, TopicPartition], Awaitable[MoveSession]]


async def open_store(
    settings: BrokerSettings, directory: str, clock: Clock, run_in_thread: RunInThread
) -> StoreConnector:
    """ZooKeeper where `zookeeper.connect` names one, else the data directory's own store."""
    if settings.optional_text("zookeeper.connect"):
        # Not imported by a broker that stands alone.
        from headwater.broker.start.zookeeper import zookeeper_connector

        return zookeeper_connector(settings)
    journal = SqliteJournal(f"{directory}/{METADATA_FILE}", run_in_thread)
    return EmbeddedConnector(await EmbeddedStore.open(journal, clock))


def read_boot_id() -> str:
    """What Linux calls this run of the kernel; elsewhere nothing is known."""
    try:
        return _BOOT_ID.read_text().strip()
    except OSError:
        return ""


@dataclass(slots=True)
class BrokerEnvironment:
    files: FileSystem = field(default_factory=DiskFiles)
    clock: Clock = field(default_factory=SystemClock)
    random: SeededRandom = field(default_factory=SeededRandom.from_system)
    #: For secrets, which a generator with a seed is not fit for.
    draw_secret_bytes: DrawBytes = secrets.token_bytes
    open_store: OpenStore = open_store
    #: Tells this boot of the machine from others; empty if that cannot be told.
    boot_id: str = field(default_factory=read_boot_id)
    #: Where blocking work runs; None for threads of the broker's own.
    run_in_thread: RunInThread | None = None
    #: Where compaction runs; None for child processes.
    run_compaction: RunJob | None = None
    #: How many files and sockets the broker may have open; None if it need not count them.
    descriptors_max: int | None = None
    #: Who moves dead letters of retry topics; None for nobody, and then they wait.
    open_move_session: OpenMoveSession | None = None
