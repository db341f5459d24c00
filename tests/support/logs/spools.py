"""Small things that tests of spools share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from headwater.client.spool.errors import SpoolDamagedError
from headwater.client.spool.files.reader import SpoolReader
from headwater.client.spool.files.record import SpooledRecord
from headwater.client.spool.spool import Spool


def record(value: bytes, topic: str = "t", key: bytes | None = None) -> SpooledRecord:
    return SpooledRecord(topic, 0, key, value, (), 1_700_000_000_000)


def append_all(spool: Spool, values: Iterable[bytes]) -> list[int]:
    return [spool.append(record(value)) for value in values]


def contents(spool: Spool) -> list[tuple[int, bytes | None]]:
    """All that is not delivered, with the numbers."""
    return list(_readable(SpoolReader(spool, spool.position)))


def undamaged_contents(spool: Spool) -> list[tuple[int, bytes | None]]:
    """The same, from files of which a power loss may have torn any."""
    reader = SpoolReader(spool, spool.position)
    found: list[tuple[int, bytes | None]] = []
    while True:
        try:
            found.extend(_readable(reader))
        except SpoolDamagedError:
            continue
        return found


def _readable(reader: SpoolReader) -> Iterator[tuple[int, bytes | None]]:
    while (numbered := reader.read()) is not None:
        yield numbered.number, numbered.record.value
