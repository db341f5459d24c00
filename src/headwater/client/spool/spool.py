"""An append-only log on the local disk that holds records until a cluster has acknowledged them.

Records have consecutive numbers and lie in segment files, which are deleted once all that is in
them is delivered. What a crash leaves is cut back to the last whole record at the next opening. A
file is forced to disk before the next one is begun (unless `fsync` is NEVER), so only the last one
can be torn.

Any number of threads append; one thread reads and advances the position. With `fsync` ALWAYS an
append returns when its record is durable, and callers that wait at the same time share one fsync;
only what is durable is handed out for shipping. After an fsync that failed nobody knows what the
disk holds, so the spool takes nothing any more.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from enum import Enum

from headwater.base.clocks import Clock, SystemClock
from headwater.client.errors import ClientClosedError
from headwater.client.spool.errors import (
    SpoolError,
    SpoolFullError,
    SpoolLockedError,
    SpoolRecordTooLargeError,
)
from headwater.client.spool.files.frames import FILE_HEADER_SIZE, FRAME_OVERHEAD, encode_frame
from headwater.client.spool.files.interval_sync import IntervalSync
from headwater.client.spool.files.local_files import LocalFiles, SpoolFiles, make_directory
from headwater.client.spool.files.position_file import PositionFile
from headwater.client.spool.files.record import SpooledRecord, encode_record
from headwater.client.spool.files.segment import Segment
from headwater.client.spool.files.segment_list import SegmentList

_LOCK_NAME = "lock"
#: A spool of at least so many segments can always give some of them back.
_SEGMENT_COUNT_MIN = 4


class FsyncPolicy(Enum):
    """When appended records are forced to disk."""

    ALWAYS = "always"
    INTERVAL = "interval"
    NEVER = "never"


class Spool:
    """Opens `directory`, making it if need be; nobody else may have it open."""

    def __init__(
        self,
        directory: str,
        *,
        fsync: FsyncPolicy = FsyncPolicy.ALWAYS,
        fsync_interval_ms: int = 1000,
        max_bytes: int = 1 << 30,
        segment_bytes: int = 16 << 20,
        files: SpoolFiles | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.directory = directory
        self.fsync = fsync
        #: Set whenever there may be something new to read; who reads clears it.
        self.arrival = threading.Event()
        self.files: SpoolFiles = LocalFiles() if files is None else files
        self._clock: Clock = SystemClock() if clock is None else clock
        self._max_bytes = max_bytes
        self._segment_bytes = min(segment_bytes, max_bytes // _SEGMENT_COUNT_MIN)
        self._changed = threading.Condition()
        self._failure: SpoolError | None = None
        self._is_closed = False
        self._is_syncing = False
        self._room_waiter_count = 0
        make_directory(self.files, directory)
        try:
            self._lock = self.files.lock(f"{directory}/{_LOCK_NAME}")
        except BlockingIOError:
            raise SpoolLockedError(
                f"The spool {directory} is in use by another producer: each needs a directory of"
                " its own."
            ) from None
        try:
            self._position = PositionFile(self.files, directory, is_synced=self._syncs)
            self._segments = SegmentList(self.files, directory, is_synced=self._syncs)
            self._durable_position, self._next_number = self._segments.recover(
                self._position.number
            )
        except BaseException:
            self._lock.release()
            raise
        #: All before it is durable.
        self._synced_number = self._next_number
        self._interval_sync = (
            IntervalSync(self.sync, fsync_interval_ms) if fsync is FsyncPolicy.INTERVAL else None
        )

    @property
    def position(self) -> int:
        """The first number that is not durably known to be delivered."""
        return self._durable_position

    @property
    def next_number(self) -> int:
        return self._next_number

    @property
    def size_bytes(self) -> int:
        with self._changed:
            return self._segments.size_bytes

    @property
    def _syncs(self) -> bool:
        return self.fsync is not FsyncPolicy.NEVER

    # -- appending -------------------------------------------------------------------------------

    def append(
        self,
        record: SpooledRecord,
        *,
        timeout_s: float = 0.0,
        register: Callable[[int], None] | None = None,
    ) -> int:
        """Take a record; returns its number once it is as durable as `fsync` promises.

        Waits up to `timeout_s` for room, then raises `SpoolFullError`. `register` hears the number
        before anybody can read the record.
        """
        content = encode_record(record)
        with self._changed:
            number = self._append(content, timeout_s, register)
            if self.fsync is FsyncPolicy.ALWAYS:
                self._wait_synced(number)
        if self._interval_sync is not None:
            self._interval_sync.note_change()
        if not self.arrival.is_set():
            self.arrival.set()
        return number

    def _append(
        self, content: bytes, timeout_s: float, register: Callable[[int], None] | None
    ) -> int:
        frame_size = FRAME_OVERHEAD + len(content)
        self._wait_for_room(frame_size, timeout_s)
        is_full = self._segments.active.size_bytes + frame_size > self._segment_bytes
        if is_full and not self._segments.active_is_empty:
            self._roll()
        number = self._next_number
        try:
            self._segments.append(encode_frame(number, content))
        except OSError as error:
            raise SpoolError(f"A record cannot be written to {self.directory}: {error}.") from error
        self._next_number = number + 1
        if register is not None:
            register(number)
        return number

    def _wait_for_room(self, frame_size: int, timeout_s: float) -> None:
        if frame_size + FILE_HEADER_SIZE > self._max_bytes:
            raise SpoolRecordTooLargeError(
                f"A record of {frame_size} bytes is larger than spool.max.bytes allows."
            )
        deadline_ms = self._clock.monotonic_ms() + timeout_s * 1000
        self._check_usable()
        while self._segments.size_bytes + frame_size + FILE_HEADER_SIZE > self._max_bytes:
            if self._give_back_active():
                continue
            left_s = (deadline_ms - self._clock.monotonic_ms()) / 1000
            if left_s <= 0:
                raise SpoolFullError(
                    f"The spool {self.directory} is full: what is not shipped yet takes"
                    f" {self._segments.size_bytes} bytes, and spool.max.bytes is {self._max_bytes}."
                )
            self._room_waiter_count += 1
            self._changed.wait(left_s)
            self._room_waiter_count -= 1
            self._check_usable()

    def _check_usable(self) -> None:
        if self._failure is not None:
            raise self._failure
        if self._is_closed:
            raise ClientClosedError("The spool is closed.")

    def _roll(self) -> None:
        try:
            self._segments.seal()
        except OSError as error:
            raise self._fail(error) from error
        self._synced_number = self._next_number
        try:
            self._segments.begin(self._next_number)
        except OSError as error:
            raise SpoolError(f"No file can be begun in {self.directory}: {error}.") from error

    # -- durability ------------------------------------------------------------------------------

    def sync(self) -> None:
        """Make durable all that is appended by now."""
        with self._changed:
            self._wait_synced(self._next_number - 1)

    def _wait_synced(self, number: int) -> None:
        """Called with the lock held, which is let go of while the disk works."""
        while self._synced_number <= number:
            if self._failure is not None:
                raise self._failure
            if self._is_syncing:
                self._changed.wait()
                continue
            # Whoever finds no fsync under way does one for all who appended before it begins.
            target, file = self._next_number, self._segments.active.file
            self._is_syncing = True
            self._changed.release()
            try:
                file.sync()
            except OSError as error:
                self._fail(error)
            finally:
                self._changed.acquire()
                self._is_syncing = False
                self._changed.notify_all()
            if self._failure is None:
                self._synced_number = max(self._synced_number, target)

    def _fail(self, error: OSError) -> SpoolError:
        self._failure = SpoolError(
            f"The spool {self.directory} takes no more records, because the disk refused to keep"
            f" some: {error}."
        )
        return self._failure

    # -- reading and giving back -----------------------------------------------------------------

    def readable_segments(self) -> list[tuple[Segment, int]]:
        """The segments from the oldest on, each with the number at which reading must stop."""
        with self._changed:
            end = self._next_number
            if self.fsync is FsyncPolicy.ALWAYS:
                end = min(end, self._synced_number)
            return self._segments.with_ends(end)

    def advance(self, number: int) -> None:
        """Write down that all before `number` is delivered, then delete what holds nothing else."""
        self._position.write(number)
        self._durable_position = number
        with self._changed:
            self._segments.remove_delivered(self.position)
            if self._room_waiter_count:
                self._give_back_active()
                self._changed.notify_all()

    def _give_back_active(self) -> bool:
        """Where all is delivered, replace the file in use by an empty one if that makes room."""
        is_delivered = self.position == self._next_number
        if not is_delivered or self._segments.active_is_empty or self._failure is not None:
            return False
        self._roll()
        self._segments.remove_delivered(self.position)
        return True

    def give_up_rest(self, segment: Segment) -> str:
        """A segment turned out to be damaged: it is kept under another name, which is returned.

        That is done when what could be read of it is delivered, and new records go elsewhere.
        """
        with self._changed:
            if segment is self._segments.active:
                self._roll()
            segment.is_damaged = True
            return segment.damaged_path

    def close(self) -> None:
        """Make durable what is appended, and let others open the directory."""
        with self._changed:
            if self._is_closed:
                return
            self._is_closed = True
            self._changed.notify_all()
        try:
            if self._interval_sync is not None:
                self._interval_sync.close()
            if self._syncs and self._failure is None:
                self.sync()
        finally:
            self._position.close()
            self._segments.close()
            self._lock.release()
