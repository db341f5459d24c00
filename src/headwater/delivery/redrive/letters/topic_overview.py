"""The dead-letter topics of a cluster: which they are, and what is in them at a glance."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterable, Callable, Mapping
from typing import Final, NamedTuple

from headwater.base.errors import KafkaError
from headwater.client.admin.async_admin import AsyncAdmin
from headwater.client.admin.configs import ConfigResource, ResourceType
from headwater.delivery.redrive.letters.letter import Letter
from headwater.delivery.redrive.letters.letter_reader import Span
from headwater.wire.delayed.retry_topics import DEAD_LETTER_PREFIX

#: By which a topic says that letters may be moved to it.
DEAD_LETTERS_SETTING: Final = "errors.deadletterqueue.group.enable"
#: How Spring and people name such topics, where no setting says it.
_ENDINGS: Final = (".dlt", "-dlt", ".dlq", "-dlq")
#: A topic with more is only looked at in part.
_LOOKED_AT_MAX: Final = 10_000
#: So many of the first letters of a partition tell since when there are some.
_FIRST: Final = 50

#: Reads the letters of a topic between offsets.
ReadSpans = Callable[[Mapping[int, Span]], AsyncIterable[list[Letter]]]


class TopicOverview(NamedTuple):
    topic: str
    letters: int
    #: Whether all of them were looked at, and not only the last ones.
    is_exact: bool
    oldest_ms: int | None
    newest_ms: int | None
    #: What most of them say.
    group: str | None
    top_error: str | None
    #: Which part of the letters that were looked at have that error.
    top_error_share: float


async def dead_letter_topics(admin: AsyncAdmin) -> list[str]:
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


async def overview(topic: str, spans: Mapping[int, Span], read: ReadSpans) -> TopicOverview:
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
    async for letters in read(looked_at):
        errors.update(letter.error for letter in letters)
        groups.update(letter.group or "(not told)" for letter in letters)
        times_ms += [letter.record.timestamp for letter in letters]
    if not is_exact:
        firsts = {
            at: Span(span.first, min(span.end, span.first + _FIRST)) for at, span in spans.items()
        }
        async for letters in read(firsts):
            times_ms += [letter.record.timestamp for letter in letters]
    seen = errors.total()
    top, top_count = errors.most_common(1)[0] if errors else (None, 0)
    return TopicOverview(
        topic,
        letters=seen if is_exact else count,
        is_exact=is_exact,
        oldest_ms=min(times_ms, default=None),
        newest_ms=max(times_ms, default=None),
        group=groups.most_common(1)[0][0] if groups else None,
        top_error=top,
        top_error_share=top_count / seen if seen else 0.0,
    )
