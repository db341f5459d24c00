"""What a broker gets from the world: disk, clocks, randomness, threads and a metadata store.

A real broker gets the operating system's. The simulator gives it a disk that fails, virtual time
and a seeded generator; the broker does not notice. Sockets are the event loop's, which is the
simulator's own there.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from headwater.base.clocks import Clock, SystemClock
from headwater.base.randomness import SeededRandom
from headwater.cluster.store.embedded_store import EmbeddedStore
from headwater.cluster.store.sqlite_journal import METADATA_FILE, SqliteJournal
from headwater.storage.compaction.cleaner import RunJob
from headwater.storage.disk_files import DiskFiles
from headwater.storage.files import FileSystem
from headwater.storage.flush import RunInThread

#: Opens the embedded store of a data directory.
OpenStore = Callable[[str, Clock, RunInThread], Awaitable[EmbeddedStore]]


async def open_sqlite_store(
    directory: str, clock: Clock, run_in_thread: RunInThread
) -> EmbeddedStore:
    """The store in a data directory's `metadata.sqlite`."""
    journal = SqliteJournal(f"{directory}/{METADATA_FILE}", run_in_thread)
    return await EmbeddedStore.open(journal, clock)


@dataclass(slots=True)
class BrokerEnvironment:
    files: FileSystem = field(default_factory=DiskFiles)
    clock: Clock = field(default_factory=SystemClock)
    random: SeededRandom = field(default_factory=SeededRandom.from_system)
    open_store: OpenStore = open_sqlite_store
    #: Where blocking work runs; None for threads of the broker's own.
    run_in_thread: RunInThread | None = None
    #: Where compaction runs; None for child processes.
    run_compaction: RunJob | None = None
