"""Files of letters: lines of JSON, or Parquet. Written and read without loss."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Final

from headwater.base.errors import InvalidRecordError
from headwater.client.producer.async_producer import AsyncProducer
from headwater.delivery.redrive.letters.json_lines import (
    LetterLineError,
    StoredLetter,
    letter_line,
    read_letter_line,
)
from headwater.delivery.redrive.letters.letter import Letter
from headwater.delivery.redrive.letters.parquet import ParquetWriter, read_parquet

_PARQUET_MAGIC: Final = b"PAR1"
_BATCH: Final = 5000


async def write_file(
    batches: AsyncIterable[Sequence[Letter]], path: str | None, *, is_parquet: bool
) -> int:
    """Write letters, as lines to standard output without a path; returns how many there are."""
    count = 0
    with contextlib.ExitStack() as stack:
        text = writer = None
        if is_parquet:
            file = stack.enter_context(Path(path or "").open("wb"))
            writer = stack.enter_context(ParquetWriter(file))
        elif path is not None:
            text = stack.enter_context(Path(path).open("w", encoding="utf-8"))
        async for letters in batches:
            count += len(letters)
            if writer is not None:
                writer.write(letters)
                continue
            for letter in letters:
                print(letter_line(letter), file=text)
    return count


def read_file(path: str) -> Iterator[StoredLetter]:
    """The letters of a file, whichever of the two kinds it is of."""
    with Path(path).open("rb") as file:
        is_parquet = file.read(len(_PARQUET_MAGIC)) == _PARQUET_MAGIC
    try:
        yield from read_parquet(path) if is_parquet else _read_lines(path)
    except LetterLineError as error:
        raise InvalidRecordError(f"{path} does not hold letters: {error}.") from None
    except UnicodeDecodeError:
        raise InvalidRecordError(f"{path} is neither UTF-8 nor Parquet.") from None


def _read_lines(path: str) -> Iterator[StoredLetter]:
    with Path(path).open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                yield read_letter_line(line)
            except LetterLineError as error:
                raise InvalidRecordError(
                    f"Line {number} of {path} is no letter: {error}."
                ) from None


async def send_file(producer: AsyncProducer, path: str, topic: str) -> int:
    """Send letters as they are in the file: key, value, headers and time; returns how many."""
    count = 0
    letters = read_file(path)
    while batch := list(islice(letters, _BATCH)):
        await _send(producer, topic, batch)
        count += len(batch)
    return count


async def _send(producer: AsyncProducer, topic: str, batch: Sequence[StoredLetter]) -> None:
    written = [
        await producer.send(
            topic,
            each.value,
            each.key,
            headers=each.headers,
            timestamp_ms=each.timestamp_ms if each.timestamp_ms >= 0 else None,
        )
        for each in batch
    ]
    for future in written:
        await future
