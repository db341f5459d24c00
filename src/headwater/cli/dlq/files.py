"""What `headwater dlq export` and `import` do: letters to files, and back."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator

from headwater.base.errors import InvalidRecordError
from headwater.base.message_id import MessageId
from headwater.delivery.redrive.async_redrives import AsyncRedrives
from headwater.delivery.redrive.letters.json_lines import StoredLetter
from headwater.delivery.redrive.letters.letter import Letter
from headwater.delivery.redrive.letters.letter_files import read_file
from headwater.delivery.redrive.letters.letter_filter import LetterFilter
from headwater.delivery.redrive.outgoing import EditFunction, Outgoing, outgoing_of


async def export(
    redrives: AsyncRedrives,
    topic: str,
    letter_filter: LetterFilter,
    path: str | None,
    *,
    is_parquet: bool,
) -> None:
    count = await redrives.export(topic, path, letter_filter, is_parquet=is_parquet)
    print(f"headwater: {count} letters of {topic} are exported.", file=sys.stderr)


async def import_letters(redrives: AsyncRedrives, path: str, topic: str) -> None:
    count = await redrives.import_letters(path, topic)
    print(f"{count} letters are written to {topic}.")


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
