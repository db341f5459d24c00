"""`Redrives`: dead letters sent back, by programs without an event loop.

redrives = Redrives(bootstrap_servers="127.0.0.1:9092")
plan = RedrivePlan(source="dlq.billing", to=To.RETRY, filter=LetterFilter(error="timeout"))
print(redrives.preview(plan).counts)
redrives.run(plan)
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Unpack

from headwater.base.message_id import MessageId
from headwater.client.settings.typed import AdminSettings
from headwater.delivery.redrive.async_redrives import AsyncRedrives
from headwater.delivery.redrive.census import Census
from headwater.delivery.redrive.letters.letter import Letter
from headwater.delivery.redrive.letters.letter_filter import LetterFilter
from headwater.delivery.redrive.letters.letter_reader import Span
from headwater.delivery.redrive.letters.topic_overview import TopicOverview
from headwater.delivery.redrive.outgoing import EditFunction
from headwater.delivery.redrive.runner import OnProgress
from headwater.delivery.redrive.tasks.plan import RedrivePlan
from headwater.delivery.redrive.tasks.task import RedriveTask


class Redrives:
    """See `AsyncRedrives`. Each call has an event loop of its own, and may be of any thread."""

    def __init__(
        self, config: Mapping[str, object] | None = None, **settings: Unpack[AdminSettings]
    ) -> None:
        self._redrives = AsyncRedrives(config, **settings)

    def letters(self, topic: str, letter_filter: LetterFilter | None = None) -> list[Letter]:
        """All letters of a topic that a filter means; with `AsyncRedrives` some at a time."""

        async def collect() -> list[Letter]:
            found = self._redrives.letters(topic, letter_filter)
            return [letter async for letters in found for letter in letters]

        return asyncio.run(collect())

    def topics(self) -> list[TopicOverview]:
        return asyncio.run(self._redrives.topics())

    def export(
        self,
        topic: str,
        path: str | None,
        letter_filter: LetterFilter | None = None,
        *,
        is_parquet: bool = False,
    ) -> int:
        return asyncio.run(self._redrives.export(topic, path, letter_filter, is_parquet=is_parquet))

    def import_letters(self, path: str, topic: str) -> int:
        return asyncio.run(self._redrives.import_letters(path, topic))

    def old_letters(
        self, topic: str, *, before_ms: int | None = None, before: MessageId | None = None
    ) -> dict[int, Span]:
        return asyncio.run(self._redrives.old_letters(topic, before_ms=before_ms, before=before))

    def purge(self, topic: str, spans: Mapping[int, Span]) -> int:
        return asyncio.run(self._redrives.purge(topic, spans))

    def preview(self, plan: RedrivePlan, edit: EditFunction | None = None) -> Census:
        return asyncio.run(self._redrives.preview(plan, edit))

    def run(
        self,
        plan: RedrivePlan,
        edit: EditFunction | None = None,
        on_progress: OnProgress | None = None,
    ) -> RedriveTask:
        return asyncio.run(self._redrives.run(plan, edit, on_progress))

    def resume(
        self,
        task_id: str,
        edit: EditFunction | None = None,
        on_progress: OnProgress | None = None,
    ) -> RedriveTask:
        return asyncio.run(self._redrives.resume(task_id, edit, on_progress))

    def pause(self, task_id: str) -> RedriveTask:
        return asyncio.run(self._redrives.pause(task_id))

    def stop(self, task_id: str) -> RedriveTask:
        return asyncio.run(self._redrives.stop(task_id))

    def tasks(self) -> list[RedriveTask]:
        return asyncio.run(self._redrives.tasks())

    def task(self, task_id: str) -> RedriveTask:
        return asyncio.run(self._redrives.task(task_id))
