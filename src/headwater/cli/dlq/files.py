"""What `headwater dlq export` and `import` do: letters to files, and back."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Final

from headwater.base.errors import InvalidRecordError
from headwater.base.message_id import MessageId
from headwater.client.admin.async_admin import AsyncAdmin
from headwater.client.producer.async_producer import AsyncProducer
from headwater.delivery.redrive.async_redrives import AsyncRedrives
from headwater.delivery.redrive.letters.json_lines import (
    LetterLineError,
    StoredLetter,
    letter_line,
    read_letter_line,
)
from headwater.delivery.redrive.letters.letter import Letter
from headwater.delivery.redrive.letters.letter_filter import LetterFilter
from headwater.delivery.redrive.letters.parquet import ParquetWriter, read_parquet
from headwater.delivery.redrive.outgoing import EditFunction, Outgoing, outgoing_of
from headwater.delivery.redrive.preconditions import find_topic

_PARQUET_MAGIC: Final = b"PAR1"
_BATCH: Final = 5000


async def export(
    redrives: AsyncRedrives,
    topic: str,
    letter_filter: LetterFilter,
    path: str | None,
    *,
    is_parquet: bool,
) -> None:
    # Before the file is made, which may be there already.
    await redrives.require_topic(topic)
    count = 0
    # A pipe may end early: then the client that reads letters is closed here.
    async with contextlib.aclosing(redrives.letters(topic, letter_filter)) as batches:
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
    print(f"headwater: {count} letters of {topic} are exported.", file=sys.stderr)


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


async def import_letters(config: Mapping[str, object], path: str, topic: str) -> None:
    """Write letters as they are in the file: key, value, headers and time."""
    async with AsyncAdmin(config) as admin:
        await find_topic(admin, topic)
    count = 0
    async with AsyncProducer(config) as producer:
        letters = read_file(path)
        while batch := list(islice(letters, _BATCH)):
            await _write(producer, topic, batch)
            count += len(batch)
    print(f"{count} letters are written to {topic}.")


async def _write(producer: AsyncProducer, topic: str, batch: Sequence[StoredLetter]) -> None:
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


def edits_of(path: str, source: str) -> EditFunction:
    """Sends the letters of a file, as they are there, and no others."""
    edited = dict(_named(read_file(path), path, source))

    def edit(outgoing: Outgoing, letter: Letter) -> Outgoing | None:
        stored = edited.get(letter.id)
        if stored is None:
            return None
        changed = letter._replace(record=stored.as_record())
        return outgoing_of(changed, outgoing.topic, outgoing.partition)

    return edit


def _named(
    letters: Iterable[StoredLetter], path: str, source: str
) -> Iterator[tuple[MessageId, StoredLetter]]:
    for stored in letters:
        if stored.id is None or stored.id.topic != source:
            raise InvalidRecordError(
                f"{path} has a letter {stored.id or 'without an id'}, which is not of {source}."
            )
        yield stored.id, stored
