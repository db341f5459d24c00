"""What `headwater dlq list` and `show` do on a cluster."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Final

from headwater.base.errors import KafkaError
from headwater.base.message_id import MessageId
from headwater.base.printable import printable, shortened
from headwater.cli.output.plain_table import WIDE, Column, print_rows
from headwater.client.admin.async_admin import AsyncAdmin
from headwater.client.admin.configs import ConfigResource, ResourceType
from headwater.client.errors import UnknownTopicError
from headwater.delivery.redrive.async_redrives import AsyncRedrives
from headwater.delivery.redrive.letters.json_lines import letter_document, shown_bytes
from headwater.delivery.redrive.letters.letter import Letter
from headwater.delivery.redrive.letters.letter_filter import LetterFilter
from headwater.delivery.redrive.letters.letter_reader import Span, letter_consumer, spans_of
from headwater.delivery.redrive.targets import DEAD_LETTERS_SETTING
from headwater.wire.delayed.retry_topics import DEAD_LETTER_PREFIX

#: How Spring and people name such topics, where no setting says it.
_ENDINGS: Final = (".dlt", "-dlt", ".dlq", "-dlq")
#: A topic with more is only looked at in part.
_LOOKED_AT_MAX: Final = 10_000
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


async def list_topics(redrives: AsyncRedrives, config: dict[str, object], *, as_json: bool) -> None:
    async with AsyncAdmin(config) as admin:
        names = await _dead_letter_topics(admin)
    rows: list[dict[str, object]] = []
    async with letter_consumer(config) as consumer:
        for name in names:
            rows.append(await _row(redrives, name, await spans_of(consumer, name)))
    if not as_json:
        for row in rows:
            row["letters"] = row["letters"] if row["is_exact"] else f"about {row['letters']}"
    print_rows(_IN_JSON if as_json else _LISTED, rows, as_json=as_json, form=WIDE)


async def _dead_letter_topics(admin: AsyncAdmin) -> list[str]:
    """Those that a setting makes one, and those that are called so."""
    names = sorted(topic.name for topic in await admin.list_topics() if not topic.is_internal)
    resources = [ConfigResource(ResourceType.TOPIC, name) for name in names]
    described = await admin.describe_configs(resources, names=[DEAD_LETTERS_SETTING])
    allowed = {
        resource.name
        for resource, entries in described.items()
        if not isinstance(entries, KafkaError)
        and any(entry.name == DEAD_LETTERS_SETTING and entry.value == "true" for entry in entries)
    }
    return [
        name
        for name in names
        if name in allowed or name.startswith(DEAD_LETTER_PREFIX) or name.lower().endswith(_ENDINGS)
    ]


async def _row(redrives: AsyncRedrives, topic: str, spans: dict[int, Span]) -> dict[str, object]:
    """Exact for a small topic; of a large one the ends of the partitions are looked at."""
    count = sum(span.end - span.first for span in spans.values())
    is_exact = count <= _LOOKED_AT_MAX
    looked_at = spans
    if not is_exact:
        share = _LOOKED_AT_MAX // len(spans)
        looked_at = {
            at: Span(max(span.first, span.end - share), span.end) for at, span in spans.items()
        }
    errors: Counter[str] = Counter()
    groups: Counter[str] = Counter()
    times_ms: list[int] = []
    async for letters in redrives.letters(topic, spans=looked_at):
        errors.update(letter.error for letter in letters)
        groups.update(letter.group or "(not told)" for letter in letters)
        times_ms += [letter.record.timestamp for letter in letters]
    if not is_exact:
        firsts = {
            at: Span(span.first, min(span.end, span.first + 50)) for at, span in spans.items()
        }
        async for letters in redrives.letters(topic, spans=firsts):
            times_ms += [letter.record.timestamp for letter in letters]
    seen = errors.total()
    top, top_count = errors.most_common(1)[0] if errors else (None, 0)
    share_percent = round(100 * top_count / seen) if seen else 0
    return {
        "topic": topic,
        "letters": seen if is_exact else count,
        "is_exact": is_exact,
        "oldest": moment(min(times_ms, default=None)),
        "newest": moment(max(times_ms, default=None)),
        "oldest_ms": min(times_ms, default=None),
        "newest_ms": max(times_ms, default=None),
        "group": groups.most_common(1)[0][0] if groups else None,
        "top_error": None if top is None else f"{shortened(top, 60)} ({share_percent} %)",
        "top_error_share": share_percent / 100,
    }


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
        ("first failure", moment(failure.first_failure_ms)),
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
