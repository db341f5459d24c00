"""The records of a spool that a broker refused for good, kept in a file with the reason.

They would be refused again however often they were sent, and all behind them would wait. So they
are set aside in `refused.log`, in the spool's directory: `read_refused` gives them back, to be
mended and sent again. The file is never cleaned by us; whoever has dealt with it removes it while
no producer has the directory open.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from headwater.base.errors import ErrorCode, KafkaError
from headwater.client.spool.files.frames import (
    FILE_HEADER_SIZE,
    check_file_header,
    encode_file_header,
    encode_frame,
    scan_frames,
)
from headwater.client.spool.files.local_files import LocalFiles, SpoolFile, SpoolFiles
from headwater.client.spool.files.record import SpooledRecord, decode_record, encode_record

NAME = "refused.log"
_HEAD = struct.Struct(">hH")


class RefusedRecord(NamedTuple):
    record: SpooledRecord
    code: ErrorCode
    reason: str


def read_refused(directory: str, *, files: SpoolFiles | None = None) -> list[RefusedRecord]:
    """What brokers refused of the spool in a directory, in the order in which they did."""
    found = LocalFiles() if files is None else files
    path = f"{directory}/{NAME}"
    if not found.exists(path):
        return []
    file = found.open(path)
    try:
        return _read(file, path)[0]
    finally:
        file.close()


def _read(file: SpoolFile, path: str) -> tuple[list[RefusedRecord], int]:
    """All whole records of the file, and where they end."""
    data = file.read_at(0, file.size())
    if not check_file_header(data, path):
        return [], 0
    scanned = scan_frames(data[FILE_HEADER_SIZE:], 0, content_size_min=_HEAD.size)
    records = [_decode(frame.content) for frame in scanned.frames]
    return records, FILE_HEADER_SIZE + scanned.size_bytes


def _decode(content: bytes) -> RefusedRecord:
    code, reason_size = _HEAD.unpack_from(content)
    end = _HEAD.size + reason_size
    reason = content[_HEAD.size : end].decode()
    return RefusedRecord(decode_record(content, end), ErrorCode.from_wire(code), reason)


class RefusedLog:
    """Appends to the file, which is made when the first record is refused."""

    def __init__(self, directory: str, files: SpoolFiles) -> None:
        self._directory = directory
        self._files = files
        self._file: SpoolFile | None = None
        self._record_count = 0
        self._size_bytes = 0

    def append(self, record: SpooledRecord, error: KafkaError) -> None:
        """Keep a refused record, durably."""
        file = self._file or self._open()
        reason = str(error).encode()[: (1 << 16) - 1].decode(errors="ignore").encode()
        content = _HEAD.pack(error.code, len(reason)) + reason + encode_record(record)
        frame = encode_frame(self._record_count, content)
        file.write_at(self._size_bytes, frame)
        file.sync()
        self._record_count += 1
        self._size_bytes += len(frame)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _open(self) -> SpoolFile:
        path = f"{self._directory}/{NAME}"
        file = self._files.open(path, create=True)
        records, size_bytes = _read(file, path)
        if size_bytes == 0:
            file.truncate(0)
            file.write_at(0, encode_file_header())
            size_bytes = FILE_HEADER_SIZE
        file.truncate(size_bytes)
        file.sync()
        self._files.sync_dir(self._directory)
        self._file, self._record_count, self._size_bytes = file, len(records), size_bytes
        return file
