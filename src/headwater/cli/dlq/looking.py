"""What `headwater dlq list` and `show` do on a cluster."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Final

from headwater.base.message_id import MessageId
from headwater.base.printable import printable, shortened
from headwater.cli.output.plain_table import WIDE, Column, Row, print_rows
from headwater.client.errors import UnknownTopicError
from headwater.delivery.redrive.async_redrives import AsyncRedrives
from headwater.delivery.redrive.letters.json_lines import letter_document, shown_bytes
from headwater.delivery.redrive.letters.letter import Letter
from headwater.delivery.redrive.letters.letter_filter import LetterFilter
from headwater.delivery.redrive.letters.letter_reader import Span, letter_consumer, spans_of
from headwater.delivery.redrive.letters.topic_overview import TopicOverview

_VALUE_SHOWN: Final = 2000
_LISTED: Final = (
    Column("TOPIC", "topic"),
    Column("LETTERS", "letters", is_number=True),
    Column("OLDEST", "oldest"),
    Column("NEWEST", "newest"),
    Column("GROUP", "group"),
    Column("TOP ERROR", "top_error"),
)
_IN_JSON: Final = tuple(
    Column("", key)
    for key in (
        *("topic", "letters", "is_exact", "oldest_ms", "newest_ms", "group", "top_error"),
        "top_error_share",
    )
)


async def list_topics(redrives: AsyncRedrives, *, as_json: bool) -> None:
    topics = await redrives.topics()
    if as_json:
        print_rows(_IN_JSON, [_as_json(each) for each in topics], as_json=True, form=WIDE)
    else:
        print_rows(_LISTED, [_listed(each) for each in topics], as_json=False, form=WIDE)


def _as_json(topic: TopicOverview) -> Row:
    return {
        **topic._asdict(),
        "top_error": _top_error(topic),
        "top_error_share": _percent(topic) / 100,
    }


def _listed(topic: TopicOverview) -> Row:
    return {
        "topic": topic.topic,
        "letters": topic.letters if topic.is_exact else f"about {topic.letters}",
        "oldest": moment(topic.oldest_ms),
        "newest": moment(topic.newest_ms),
        "group": topic.group,
        "top_error": _top_error(topic),
    }


def _top_error(topic: TopicOverview) -> str | None:
    error = topic.top_error
    return None if error is None else f"{shortened(error, 60)} ({_percent(topic)} %)"


def _percent(topic: TopicOverview) -> int:
    return round(100 * topic.top_error_share)


async def show(
    redrives: AsyncRedrives,
    config: dict[str, object],
    what: str,
    letter_filter: LetterFilter,
    count: int,
    *,
    as_json: bool,
) -> None:
    """One letter by its place, or the last ones of a topic."""
    if "@" in what:
        letters = await _letter_at(redrives, MessageId.parse(what))
    else:
        await redrives.require_topic(what)
        async with letter_consumer(config) as consumer:
            spans = await spans_of(consumer, what)
        letters = await _last_letters(redrives, what, spans, letter_filter, count)
    for letter in letters:
        if as_json:
            document = letter_document(letter)
            document["failure"]["error_stack"] = letter.failure.error_stack
            print(json.dumps(document, ensure_ascii=False))
        else:
            print("\n".join(_described(letter)), end="\n\n")
    if not letters and not as_json:
        print(f"There are no such letters in {what}.")


async def _letter_at(redrives: AsyncRedrives, place: MessageId) -> list[Letter]:
    await redrives.require_topic(place.topic)
    spans = {place.partition: Span(place.offset, place.offset + 1)}
    batches = redrives.letters(place.topic, spans=spans)
    found = [letter async for letters in batches for letter in letters]
    if not found:
        raise UnknownTopicError(f"There is no letter {place}: it may have been deleted.")
    return found


async def _last_letters(
    redrives: AsyncRedrives,
    topic: str,
    spans: dict[int, Span],
    letter_filter: LetterFilter,
    count: int,
) -> list[Letter]:
    """The last ones in time. Further back is looked until there are enough."""
    reach = count * 2
    while True:
        looked_at = {
            at: Span(max(span.first, span.end - reach), span.end) for at, span in spans.items()
        }
        found: list[Letter] = []
        async for letters in redrives.letters(topic, letter_filter, looked_at):
            found += letters
        if len(found) >= count or looked_at == spans:
            break
        reach *= 8
    found.sort(key=lambda letter: (letter.record.timestamp, letter.id))
    return found[-count:]


def _described(letter: Letter) -> list[str]:
    """A letter for people, a line for each thing that is known."""
    failure, record = letter.failure, letter.record
    facts: list[tuple[str, object]] = [
        ("letter", letter.id),
        ("origin", letter.origin or "not told"),
        ("group", failure.group),
        ("written by", failure.family.value),
        ("attempts", failure.attempts),
        ("produced", moment(failure.original_timestamp_ms)),
        ("first failure", moment(failure.first_failure_ms)),
        ("first error", failure.first_error_class),
        ("first message", failure.first_error_message),
        ("last failure", moment(letter.last_failure_ms)),
        ("error", failure.error_class),
        ("message", failure.error_message),
        ("sent back", f"{letter.redrives} times before" if letter.redrives else None),
        ("key", _shown(record.key)),
        ("value", _shown(record.value)),
    ]
    lines = [
        f"{name + ':':<15}{printable(str(value))}" for name, value in facts if value is not None
    ]
    lines += [
        f"{'header:':<15}{printable(name)}: {_shown(value)}" for name, value in record.headers
    ]
    if failure.error_stack:
        lines += [
            "stack:",
            *(f"    {printable(line)}" for line in failure.error_stack.splitlines()),
        ]
    return lines


def _shown(data: bytes | None) -> str:
    if data is None:
        return "(null)"
    shown = shown_bytes(data)
    text = shown if isinstance(shown, str) else f"(base64) {(shown or {}).get('base64', '')}"
    return printable(shortened(text, _VALUE_SHOWN))


def moment(time_ms: int | None) -> str | None:
    if time_ms is None or time_ms < 0:
        return None
    try:
        found = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=time_ms)
    except OverflowError:
        return str(time_ms)
    return found.isoformat(timespec="seconds").replace("+00:00", "Z")
