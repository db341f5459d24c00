"""The journal of an embedded store in one SQLite file, `metadata.sqlite` in the data directory.

One table holds a row per node, another the number of the last transaction. The file is in WAL mode
with `synchronous=FULL`: a commit is one append to the write-ahead log and one fsync, and what it
acknowledges survives a loss of power. It is held with an exclusive lock, which spares SQLite its
shared memory and keeps a second process out.

SQLite blocks, so every call runs in a thread that the caller provides. The store never lets calls
overlap, hence one connection may wander from thread to thread.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from typing import Final

from headwater.base.threads import RunInThread
from headwater.cluster.store.embedded.journal import Changes, JournalContent, NodeRow
from headwater.cluster.store.errors import StoreFileError, StoreWriteError

METADATA_FILE: Final = "metadata.sqlite"

_APPLICATION_ID: Final = 0x48647774
_FORMAT_VERSION: Final = 1
_PORTION_ROWS: Final = 500

_SCHEMA: Final = f"""
BEGIN IMMEDIATE;
CREATE TABLE node (
    path TEXT PRIMARY KEY,
    data BLOB NOT NULL,
    version INTEGER NOT NULL,
    created_ms INTEGER NOT NULL,
    modified_ms INTEGER NOT NULL,
    creation_id INTEGER NOT NULL,
    sequence INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE last_transaction (transaction_id INTEGER NOT NULL);
INSERT INTO last_transaction VALUES (0);
PRAGMA application_id = {_APPLICATION_ID};
PRAGMA user_version = {_FORMAT_VERSION};
COMMIT;
"""


class SqliteJournal:
    """Rows of nodes in a file; made by its path, opened by `load`."""

    def __init__(self, path: str, run_in_thread: RunInThread) -> None:
        self.path = path
        self._run_in_thread = run_in_thread
        self._connection: sqlite3.Connection | None = None

    async def load(self) -> JournalContent:
        """Open the file, or make it, and read all rows; raises StoreFileError."""
        return await self._run_in_thread(self._open_and_read)

    async def commit(self, changes: Changes, transaction_id: int) -> None:
        await self._run_in_thread(lambda: self._write(changes, transaction_id))

    async def close(self) -> None:
        await self._run_in_thread(self._close)

    def _open_and_read(self) -> JournalContent:
        try:
            return self._read(self._open())
        except sqlite3.Error as error:
            raise StoreFileError(self._explain(error)) from error

    def _open(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self.path, timeout=0, isolation_level=None, check_same_thread=False
        )
        self._connection = connection
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("PRAGMA synchronous = FULL")
        application_id, version = (
            connection.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("application_id", "user_version")
        )
        is_new = not connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
        if not is_new and (application_id, version) != (_APPLICATION_ID, _FORMAT_VERSION):
            raise StoreFileError(
                f"{self.path} is an SQLite file, but not one that this version of Headwater can "
                "use as its metadata store."
            )
        connection.execute("PRAGMA journal_mode = WAL")
        if is_new:
            connection.executescript(_SCHEMA)
        return connection

    def _read(self, connection: sqlite3.Connection) -> JournalContent:
        (transaction_id,) = connection.execute("SELECT * FROM last_transaction").fetchone()
        # By path: so a parent comes in front of its children.
        rows = connection.execute("SELECT * FROM node ORDER BY path")
        return JournalContent(self._in_portions(rows), transaction_id)

    def _in_portions(self, cursor: sqlite3.Cursor) -> Iterator[NodeRow]:
        """The rows, without ever having all of them in memory."""
        try:
            while rows := cursor.fetchmany(_PORTION_ROWS):
                yield from rows
        except sqlite3.Error as error:
            raise StoreFileError(self._explain(error)) from error

    def _write(self, changes: Changes, transaction_id: int) -> None:
        connection = self._connection
        if connection is None:
            raise StoreWriteError(f"The metadata store {self.path} is closed.")
        kept = [row for row in changes.values() if row is not None]
        gone = [(path,) for path, row in changes.items() if row is None]
        try:
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany("DELETE FROM node WHERE path = ?", gone)
            connection.executemany("REPLACE INTO node VALUES (?, ?, ?, ?, ?, ?, ?)", kept)
            connection.execute("UPDATE last_transaction SET transaction_id = ?", (transaction_id,))
            connection.execute("COMMIT")
        except sqlite3.Error as error:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise StoreWriteError(
                f"The metadata store {self.path} cannot be written: {error}."
            ) from error

    def _close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _explain(self, error: sqlite3.Error) -> str:
        match getattr(error, "sqlite_errorcode", None):
            case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
                return f"The metadata store {self.path} is in use by another process."
            case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
                return f"The metadata store {self.path} is damaged: {error}."
            case sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_READONLY:
                reason = _fault_of(os.path.dirname(self.path)) or str(error)
                return f"The metadata store {self.path} cannot be opened: {reason}."
            case _:
                return f"The metadata store {self.path} cannot be opened: {error}."


def _fault_of(directory: str) -> str | None:
    """Why no file can be made in a directory, in plainer words than the database has."""
    if not os.path.isdir(directory):
        return f"{directory} is not a directory"
    if not os.access(directory, os.W_OK | os.X_OK):
        return f"this user may not write to {directory}"
    return None
