"""The oldest letters of a topic, which are deleted from the first one on, up to some point."""

from __future__ import annotations

from headwater.base.errors import InvalidConfigError
from headwater.base.ids import TopicPartition
from headwater.base.message_id import MessageId
from headwater.client.consumer.async_consumer import AsyncConsumer
from headwater.delivery.redrive.letters.letter_reader import Span, spans_of


async def old_letters(
    consumer: AsyncConsumer, topic: str, before_ms: int | None, before: MessageId | None
) -> dict[int, Span]:
    """What was written before a time, or lies before a letter in its partition; else all.

    Only partitions that have something.
    """
    spans = await spans_of(consumer, topic)
    ends = {at: span.end for at, span in spans.items()}
    if before is not None and before.partition not in spans:
        raise InvalidConfigError(f"The topic {topic!r} has no partition {before.partition}.")
    if before is not None:
        ends = {at: min(before.offset, end) for at, end in ends.items() if at == before.partition}
    elif before_ms is not None:
        found = await consumer.offsets_for_times(
            {TopicPartition(topic, at): before_ms for at in spans}
        )
        for place, kept in found.items():
            if kept is not None:
                ends[place.partition] = min(kept.offset, ends[place.partition])
    return {at: Span(spans[at].first, end) for at, end in ends.items() if end > spans[at].first}
