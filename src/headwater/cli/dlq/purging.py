"""What `headwater dlq purge` does: letters deleted for good, from the oldest on."""

from __future__ import annotations

import typer

from headwater.base.message_id import MessageId
from headwater.delivery.redrive.async_redrives import AsyncRedrives


async def purge(
    redrives: AsyncRedrives,
    topic: str,
    before_ms: int | None,
    before: MessageId | None,
    *,
    is_sure: bool,
) -> None:
    spans = await redrives.old_letters(topic, before_ms=before_ms, before=before)
    count = sum(span.end - span.first for span in spans.values())
    if not count:
        print(f"There is nothing to delete in {topic}.")
        return
    if not is_sure:
        asked = f"Delete up to {count} letters of {topic}? They cannot be brought back."
        typer.confirm(asked, abort=True)
    await redrives.purge(topic, spans)
    print(f"Up to {count} letters of {topic} are deleted.")
