"""Room on a full disk: a reserve for what must go on while no records can be taken.

A broker on a full disk still has to write a little: checkpoints, the metadata store's journal, the
start offsets that come before segments are deleted. Without room for that it could not even delete
the topic that would make room, nor start. So every log directory holds a file of
`log.dir.reserve.bytes` that nobody reads. When an append finds no room, or there is none at a start
or a stop, half of that file is given up, and appends are refused, so that the room is not theirs.
The other half is for the next time: others may fill the disk again. Appends are taken again when
there is room for twice the reserve: then it is set aside anew, and what flows in has some way to go
before the disk is full once more.
"""

from __future__ import annotations

import contextlib
import errno
import logging
from typing import Final

from headwater.storage.disk.files import FileSystem

_logger = logging.getLogger(__name__)

RESERVE_FILE: Final = ".room-reserve"
NO_ROOM_ERRORS: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
#: An eighth of the reserve is enough for a start, a stop or a deletion of some thousand logs.
_ENOUGH_SHARE: Final = 8
_PIECE: Final = bytes(1 << 20)


class DirectoryRoom:
    """One log directory's reserve; its owner is the directory's."""

    def __init__(self, files: FileSystem, directory: str, reserve_bytes: int) -> None:
        self._files = files
        self._directory = directory
        self._path = f"{directory}/{RESERVE_FILE}"
        self._reserve_bytes = reserve_bytes
        #: Whether there was too little room for records when somebody looked last.
        self.is_short = False

    def prepare(self) -> None:
        """The directory is opened: set the reserve aside, or use it if there is no other room."""
        if self._reserve_bytes == 0:
            self._remove()
        elif not self.has_room():
            self.ran_out()

    def ran_out(self) -> None:
        """A write found no room, or would not: from now on only what must be written is."""
        if self._reserve_bytes > 0:
            self.is_short = True
            self.give_up_some()

    def give_up_some(self) -> None:
        """If next to nothing is left, let what must be written have half of the reserve."""
        kept_bytes = self._kept_bytes()
        if kept_bytes == 0:
            return
        try:
            if self._files.free_bytes(self._directory) < self._reserve_bytes // _ENOUGH_SHARE:
                self._cut(kept_bytes // 2)
        except OSError as error:
            _logger.warning("%s could not be used: %s", self._path, error.strerror)

    def has_room(self) -> bool:
        """Whether records can be taken, looked up anew. If they can, the reserve is there too."""
        if self._reserve_bytes == 0:
            return True
        kept_bytes = self._kept_bytes()
        free_bytes = self._files.free_bytes(self._directory)
        if free_bytes + kept_bytes < 2 * self._reserve_bytes:
            return False
        if kept_bytes != self._reserve_bytes and not self._set_aside():
            return False
        self.is_short = False
        return True

    def _kept_bytes(self) -> int:
        with contextlib.suppress(OSError):
            return self._files.size(self._path)
        return 0

    def _set_aside(self) -> bool:
        try:
            file = self._files.open(self._path, create=True)
            try:
                file.truncate(0)
                for position in range(0, self._reserve_bytes, len(_PIECE)):
                    size = min(len(_PIECE), self._reserve_bytes - position)
                    file.write_at(position, _PIECE[:size])
            finally:
                file.close()
        except OSError as error:
            _logger.warning("no room was set aside in %s: %s", self._directory, error.strerror)
            self._remove()
            return False
        return True

    def _cut(self, size_bytes: int) -> None:
        file = self._files.open(self._path)
        try:
            file.truncate(size_bytes)
        finally:
            file.close()

    def _remove(self) -> None:
        with contextlib.suppress(OSError):
            self._files.remove(self._path)
