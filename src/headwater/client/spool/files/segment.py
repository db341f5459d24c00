"""One file of a spool: a run of records with consecutive numbers, the first of which names it."""

from __future__ import annotations

from headwater.client.spool.files.frames import (
    FILE_HEADER_SIZE,
    ScannedFrames,
    check_file_header,
    encode_file_header,
    scan_frames,
)
from headwater.client.spool.files.local_files import SpoolFile, SpoolFiles
from headwater.client.spool.files.record import RECORD_SIZE_MIN

_SUFFIX = ".spool"
_DAMAGED_SUFFIX = ".damaged"
_NUMBER_DIGITS = 20
READ_SIZE = 1 << 18


def segment_name(first_number: int) -> str:
    return f"{first_number:0{_NUMBER_DIGITS}d}{_SUFFIX}"


def first_number_of(name: str) -> int | None:
    """The number in a segment's name, None if the name is that of something else."""
    digits = name.removesuffix(_SUFFIX)
    if digits == name or len(digits) != _NUMBER_DIGITS or not digits.isascii():
        return None
    return int(digits) if digits.isdecimal() else None


class Segment:
    """Owned by the spool; only the last one is written to."""

    def __init__(
        self, files: SpoolFiles, path: str, first_number: int, file: SpoolFile, size_bytes: int
    ) -> None:
        self.path = path
        self.first_number = first_number
        self.file = file
        self.size_bytes = size_bytes
        #: Whether something in it could not be read.
        self.is_damaged = False
        self._files = files

    @classmethod
    def create(cls, files: SpoolFiles, directory: str, first_number: int) -> Segment:
        """An empty one in place of whatever has its name; neither is durable yet."""
        path = f"{directory}/{segment_name(first_number)}"
        file = files.open(path, create=True)
        file.truncate(0)
        file.write_at(0, encode_file_header())
        return cls(files, path, first_number, file, FILE_HEADER_SIZE)

    @classmethod
    def open(cls, files: SpoolFiles, directory: str, first_number: int) -> Segment:
        path = f"{directory}/{segment_name(first_number)}"
        file = files.open(path)
        check_file_header(file.read_at(0, FILE_HEADER_SIZE), path)
        return cls(files, path, first_number, file, file.size())

    def recover(self) -> int:
        """Cut off a torn tail, durably; the number after the last record that is whole."""
        number, position = self.first_number, FILE_HEADER_SIZE
        while (scanned := self.scan(number, position)).frames:
            number += len(scanned.frames)
            position += scanned.size_bytes
        if not check_file_header(self.file.read_at(0, FILE_HEADER_SIZE), self.path):
            self.file.write_at(0, encode_file_header())
        self.file.truncate(position)
        self.file.sync()
        self.size_bytes = position
        return number

    def append(self, frame: bytes) -> None:
        """Write a frame at the end; a write that fails leaves nothing behind."""
        try:
            self.file.write_at(self.size_bytes, frame)
        except OSError:
            self.file.truncate(self.size_bytes)
            raise
        self.size_bytes += len(frame)

    def scan(self, number: int, position: int) -> ScannedFrames:
        """Some valid frames from the one at `position` on, which has that number.

        There is at least one, unless what lies there is the end, or no valid frame.
        """
        left = max(0, self.size_bytes - position)
        read_size = READ_SIZE
        while True:
            data = self.file.read_at(position, min(read_size, left))
            scanned = scan_frames(data, number, content_size_min=RECORD_SIZE_MIN)
            is_cut_short = len(data) < scanned.needed_bytes <= left
            if scanned.frames or not is_cut_short:
                return scanned
            read_size = scanned.needed_bytes

    @property
    def damaged_path(self) -> str:
        return self.path + _DAMAGED_SUFFIX

    def retire(self) -> None:
        """It is not needed any more: delete it, or keep it for whoever wants to look at it."""
        if self.is_damaged:
            self._files.rename(self.path, self.damaged_path)
        else:
            self._files.remove(self.path)
