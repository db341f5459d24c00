"""Kafka's checkpoint files: small tables as text, replaced as a whole.

    0               the version of the format
    2               how many lines follow
    orders 0 1500
    orders 1 20

A log directory has four of these, a line of each being topic, partition and offset:

- `recovery-point-offset-checkpoint`: what is certainly on disk; recovery starts there.
- `replication-offset-checkpoint`: the high watermarks.
- `log-start-offset-checkpoint`: where logs begin whose first segment holds deleted records.
- `cleaner-offset-checkpoint`: how far compaction has come.

A partition's `leader-epoch-checkpoint` has the same frame around lines of its own. An empty file is
an empty table, because Kafka creates its checkpoints empty. Anything else that is not in the format
raises `CorruptCheckpointError`, which names the line; to whoever reads it that is no worse than an
absent file, so it logs the error and goes on.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeVar

from headwater.base.ids import TopicPartition
from headwater.storage.disk.files import FileSystem, read_bytes, write_atomically
from headwater.storage.errors import CorruptCheckpointError

RECOVERY_POINT: Final = "recovery-point-offset-checkpoint"
REPLICATION: Final = "replication-offset-checkpoint"
LOG_START: Final = "log-start-offset-checkpoint"
CLEANER: Final = "cleaner-offset-checkpoint"

VERSION: Final = 0
_ENTRIES_FROM_LINE: Final = 3
_INTEGER: Final = re.compile(r"[+-]?[0-9]+", re.ASCII)

Entry = TypeVar("Entry")


#: What ends a line for Java; `str.splitlines` knows more.
_LINE_END: Final = re.compile(r"\r\n|\r|\n")


def parse_integer(text: str, bits: int) -> int:
    """A decimal number as Kafka reads it; `ValueError` if it is none or needs more bits."""
    if _INTEGER.fullmatch(text) is None:
        raise ValueError(f"{text!r} is not a number")
    number = int(text)
    if not -(1 << bits - 1) <= number < 1 << bits - 1:
        raise ValueError(f"{text} is not a number of {bits} bits")
    return number


def format_table(lines: Iterable[str]) -> bytes:
    """The content of a checkpoint file with these lines."""
    entries = list(lines)
    return "".join(f"{line}\n" for line in (str(VERSION), str(len(entries)), *entries)).encode()


def parse_table(data: bytes, path: str, parse_line: Callable[[str], Entry]) -> list[Entry]:
    """The entries of a checkpoint file; `parse_line` raises ValueError to refuse a line."""
    try:
        lines = _LINE_END.split(data.decode())
    except UnicodeDecodeError as error:
        raise CorruptCheckpointError(f"{path}: byte {error.start} is not text.") from error
    if not lines[-1]:
        lines.pop()
    if not lines:
        return []
    version = _parse(path, lines, 1, lambda line: parse_integer(line, 32))
    if version != VERSION:
        raise CorruptCheckpointError(
            f"{path}: line 1 says version {version}, and only {VERSION} is known."
        )
    if len(lines) == 1:
        return []
    count = _parse(path, lines, 2, lambda line: parse_integer(line, 32))
    entries = [
        _parse(path, lines, number, parse_line)
        for number in range(_ENTRIES_FROM_LINE, len(lines) + 1)
    ]
    if len(entries) != count:
        raise CorruptCheckpointError(
            f"{path}: line 2 says that {count} lines follow, but there are {len(entries)}."
        )
    return entries


def _parse(path: str, lines: list[str], number: int, parse: Callable[[str], Entry]) -> Entry:
    line = lines[number - 1]
    try:
        return parse(line)
    except ValueError as error:
        raise CorruptCheckpointError(f"{path}: line {number} is {line!r}: {error}.") from error


class OffsetCheckpoint:
    """One of a log directory's four tables of offsets."""

    def __init__(self, files: FileSystem, path: str) -> None:
        self.path = path
        self._files = files

    def read(self) -> dict[TopicPartition, int]:
        """The table; an absent file is an empty one."""
        try:
            data = read_bytes(self._files, self.path)
        except FileNotFoundError:
            return {}
        return dict(parse_table(data, self.path, _parse_offset))

    def write(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Replace the table durably; a crash leaves the old one or the new one."""
        lines = (f"{topic} {number} {offset}" for (topic, number), offset in offsets.items())
        write_atomically(self._files, self.path, format_table(lines))


def _parse_offset(line: str) -> tuple[TopicPartition, int]:
    fields = line.split()
    if len(fields) != 3:
        raise ValueError("it should have a topic, a partition and an offset")
    topic, partition, offset = fields
    return TopicPartition(topic, parse_integer(partition, 32)), parse_integer(offset, 64)
