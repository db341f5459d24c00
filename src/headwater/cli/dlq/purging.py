"""What `headwater dlq purge` does: letters deleted for good, from the oldest on."""

from __future__ import annotations

import sys
from collections.abc import Mapping

import typer

from headwater.base.errors import KafkaError
from headwater.base.ids import TopicPartition
from headwater.client.admin.async_admin import AsyncAdmin
from headwater.delivery.redrive.letters.letter_reader import letter_consumer, spans_of
from headwater.delivery.redrive.preconditions import find_topic


async def purge(
    config: Mapping[str, object],
    topic: str,
    before_ms: int | None,
    before_offset: tuple[int, int] | None,
    *,
    is_sure: bool,
) -> bool:
    """Returns whether something went wrong."""
    async with AsyncAdmin(config) as admin:
        await find_topic(admin, topic)
        ends = await _ends(config, topic, before_ms, before_offset)
        count = sum(end - first for first, end in ends.values())
        if not count:
            print(f"There is nothing to delete in {topic}.")
            return False
        if not is_sure:
            asked = f"Delete up to {count} letters of {topic}? They cannot be brought back."
            typer.confirm(asked, abort=True)
        outcomes = await admin.delete_records(
            {TopicPartition(topic, at): end for at, (_, end) in ends.items()}, raise_errors=False
        )
    failures = [outcome for outcome in outcomes.values() if isinstance(outcome, KafkaError)]
    for sentence in dict.fromkeys(map(str, failures)):
        print(f"headwater: {sentence}", file=sys.stderr)
    if not failures:
        print(f"Up to {count} letters of {topic} are deleted.")
    return bool(failures)


async def _ends(
    config: Mapping[str, object],
    topic: str,
    before_ms: int | None,
    before_offset: tuple[int, int] | None,
) -> dict[int, tuple[int, int]]:
    """First offsets, and those before which is deleted, of the partitions that have something."""
    async with letter_consumer(config) as consumer:
        spans = await spans_of(consumer, topic)
        ends = {at: span.end for at, span in spans.items()}
        if before_offset is not None:
            partition, offset = before_offset
            ends = {at: min(offset, end) for at, end in ends.items() if at == partition}
        elif before_ms is not None:
            times = {TopicPartition(topic, at): before_ms for at in spans}
            found = await consumer.offsets_for_times(times)
            for place, kept in found.items():
                if kept is not None:
                    ends[place.partition] = min(kept.offset, ends[place.partition])
    return {
        at: (spans[at].first, end)
        for at, end in ends.items()
        if at in spans and end > spans[at].first
    }
