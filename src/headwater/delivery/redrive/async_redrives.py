"""`AsyncRedrives`: dead letters sent back, by tasks that others can see and steer.

A task runs in the process that began it. If that dies, `resume` carries on, there or anywhere.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncGenerator, Mapping
from dataclasses import replace
from functools import partial
from typing import Final, Unpack

from headwater.base.errors import InvalidConfigError
from headwater.base.ids import TopicPartition
from headwater.base.message_id import MessageId
from headwater.client.admin.async_admin import AsyncAdmin
from headwater.client.environment import HasEnvironment
from headwater.client.settings.client_config import given_config
from headwater.client.settings.typed import AdminSettings
from headwater.delivery.redrive.census import Census
from headwater.delivery.redrive.clients import Clients
from headwater.delivery.redrive.judgement import Judge
from headwater.delivery.redrive.letters.letter import Letter, read_letter
from headwater.delivery.redrive.letters.letter_files import send_file, write_file
from headwater.delivery.redrive.letters.letter_filter import LetterFilter
from headwater.delivery.redrive.letters.letter_reader import (
    LetterReader,
    Span,
    spans_of,
)
from headwater.delivery.redrive.letters.old_letters import old_letters
from headwater.delivery.redrive.letters.topic_overview import (
    TopicOverview,
    dead_letter_topics,
    overview,
)
from headwater.delivery.redrive.outgoing import EditFunction
from headwater.delivery.redrive.preconditions import (
    checked_targets,
    done_ranges,
    find_topic,
    require_free,
    require_task,
)
from headwater.delivery.redrive.runner import OnProgress, Runner, left_of
from headwater.delivery.redrive.sending import Sending
from headwater.delivery.redrive.targets import Targets
from headwater.delivery.redrive.tasks.offset_ranges import GrowingRanges
from headwater.delivery.redrive.tasks.plan import RedrivePlan
from headwater.delivery.redrive.tasks.task import RedriveTask, Wanted
from headwater.delivery.redrive.tasks.task_topic import (
    TASK_TOPIC,
    Orders,
    TaskTopic,
)

_READ_RECORDS: Final = 5000
_READ_S: Final = 1.0


class AsyncRedrives(HasEnvironment):
    """The redrives of a cluster, from an event loop. Settings are those that every client has."""

    def __init__(
        self, config: Mapping[str, object] | None = None, **settings: Unpack[AdminSettings]
    ) -> None:
        named = {name.replace("_", "."): value for name, value in settings.items()}
        self._clients = Clients({**given_config(config), **named}, self._given_environment)

    # -- letters ---------------------------------------------------------------------------------

    async def require_topic(self, topic: str) -> None:
        """Raises at once if the cluster cannot be reached, or has no such topic."""
        async with self._clients.admin() as admin:
            await find_topic(admin, topic)

    async def letters(
        self,
        topic: str,
        letter_filter: LetterFilter | None = None,
        spans: Mapping[int, Span] | None = None,
    ) -> AsyncGenerator[list[Letter], None]:
        """The letters of a topic that a filter means, some at a time; all there are by now."""
        wanted = letter_filter or LetterFilter()
        async with self._clients.letter_consumer() as consumer:
            reader = LetterReader(
                consumer, topic, await spans_of(consumer, topic) if spans is None else spans
            )
            while not reader.is_done:
                records = await reader.read(_READ_RECORDS, _READ_S)
                letters = [letter for letter in map(read_letter, records) if wanted.matches(letter)]
                if letters:
                    yield letters

    async def topics(self) -> list[TopicOverview]:
        """The dead-letter topics of the cluster, and what is in them at a glance."""
        async with self._clients.admin() as admin:
            names = await dead_letter_topics(admin)
        async with self._clients.letter_consumer() as consumer:
            return [
                await overview(
                    name, await spans_of(consumer, name), partial(self.letters, name, None)
                )
                for name in names
            ]

    async def export(
        self,
        topic: str,
        path: str | None,
        letter_filter: LetterFilter | None = None,
        *,
        is_parquet: bool = False,
    ) -> int:
        """Write letters to a file, as lines of JSON or as Parquet; returns how many there are."""
        if is_parquet and path is None:
            raise InvalidConfigError("Parquet needs a file to be written to.")
        # Before the file is made, which may be there already.
        await self.require_topic(topic)
        # A pipe may end early: then the client that reads letters is closed here.
        async with contextlib.aclosing(self.letters(topic, letter_filter)) as batches:
            return await write_file(batches, path, is_parquet=is_parquet)

    async def import_letters(self, path: str, topic: str) -> int:
        """Write the letters of a file to a topic as they are there; returns how many there are."""
        await self.require_topic(topic)
        async with self._clients.producer() as producer:
            return await send_file(producer, path, topic)

    async def old_letters(
        self, topic: str, *, before_ms: int | None = None, before: MessageId | None = None
    ) -> dict[int, Span]:
        """By partition, the oldest letters: up to a time, a letter, or the end."""
        await self.require_topic(topic)
        if before is not None and before.topic != topic:
            raise InvalidConfigError(f"The letter {before} is not of the topic {topic!r}.")
        async with self._clients.letter_consumer() as consumer:
            return await old_letters(consumer, topic, before_ms, before)

    async def purge(self, topic: str, spans: Mapping[int, Span]) -> int:
        """Delete what `old_letters` found. It cannot be brought back: see `export`.

        Returns how many letters that are at most: of what was moved by a transaction, the mark of
        its end counts too.
        """
        async with self._clients.admin() as admin:
            await admin.delete_records(
                {TopicPartition(topic, at): span.end for at, span in spans.items()}
            )
        return sum(span.end - span.first for span in spans.values())

    async def preview(self, plan: RedrivePlan, edit: EditFunction | None = None) -> Census:
        """A dry run: what a task of this plan would do now. Nothing is sent or written."""
        async with self._clients.admin() as admin:
            source = await find_topic(admin, plan.source)
            book = await TaskTopic(self._clients, admin).read()
            targets = await checked_targets(admin, plan)
            judge = Judge(plan, targets, done_ranges(book, plan.source, str(source.topic_id)), edit)
            census = Census()
            async with self._clients.letter_consumer() as consumer:
                reader = LetterReader(consumer, plan.source, await spans_of(consumer, plan.source))
                while not reader.is_done:
                    census.add(await judge.judge(await reader.read(_READ_RECORDS, _READ_S)))
            return census

    # -- tasks -----------------------------------------------------------------------------------

    async def run(
        self,
        plan: RedrivePlan,
        edit: EditFunction | None = None,
        on_progress: OnProgress | None = None,
    ) -> RedriveTask:
        """Begin a task and run it to its end: done, or stopped by somebody."""
        plan = replace(plan, has_function=edit is not None)
        async with self._clients.admin() as admin:
            source = await find_topic(admin, plan.source)
            await checked_targets(admin, plan)
            topic = TaskTopic(self._clients, admin)
            await topic.have(source)
            require_free(await topic.read(), plan.source, None, self._clients.wall_ms())
            async with self._clients.letter_consumer() as consumer:
                spans = await spans_of(consumer, plan.source)
            task = RedriveTask(
                self._clients.make_task_id(),
                plan,
                str(source.topic_id),
                spans,
                self._clients.wall_ms(),
            )
            await self._order(task)
            return await self._run(admin, task.id, edit, on_progress)

    async def resume(
        self,
        task_id: str,
        edit: EditFunction | None = None,
        on_progress: OnProgress | None = None,
    ) -> RedriveTask:
        """Let a paused task go on; one that nobody runs any more is run here, to its end."""
        async with self._clients.admin() as admin:
            book = await TaskTopic(self._clients, admin).read()
            task = require_task(book, task_id)
            state = task.state(self._clients.wall_ms())
            if state.is_final:
                raise InvalidConfigError(
                    f"The task {task_id} is {state}: begin another, which leaves out what was sent."
                )
            source = await find_topic(admin, task.plan.source)
            if str(source.topic_id) != task.source_id:
                raise InvalidConfigError(
                    f"The topic {task.plan.source!r} was deleted and made anew: the letters of the "
                    f"task {task_id} are gone."
                )
            is_alive = task.is_alive(self._clients.wall_ms())
            if not is_alive:
                require_free(book, task.plan.source, task_id, self._clients.wall_ms())
                # What would fail for want of the function fails before anything is written.
                Judge(task.plan, Targets(admin), {}, edit)
            task = replace(task, wanted=Wanted.RUNNING)
            await self._order(task)
            return task if is_alive else await self._run(admin, task_id, edit, on_progress)

    async def pause(self, task_id: str) -> RedriveTask:
        """Have a task wait, within a second or so, until it is resumed."""
        return await self._want(task_id, Wanted.PAUSED)

    async def stop(self, task_id: str) -> RedriveTask:
        """End a task, within a second or so. What it has sent stays sent."""
        return await self._want(task_id, Wanted.STOPPED)

    async def tasks(self) -> list[RedriveTask]:
        """All tasks there were, the oldest first."""
        async with self._clients.admin() as admin:
            return (await TaskTopic(self._clients, admin).read()).tasks()

    async def task(self, task_id: str) -> RedriveTask:
        async with self._clients.admin() as admin:
            return require_task(await TaskTopic(self._clients, admin).read(), task_id)

    async def _want(self, task_id: str, wanted: Wanted) -> RedriveTask:
        task = await self.task(task_id)
        state = task.state(self._clients.wall_ms())
        if state.is_final:
            raise InvalidConfigError(f"The task {task_id} is {state} already.")
        task = replace(task, wanted=wanted)
        await self._order(task)
        return task

    async def _order(self, task: RedriveTask) -> None:
        async with self._clients.producer() as producer:
            value = json.dumps(task.order_json(), separators=(",", ":")).encode()
            await producer.send_and_wait(TASK_TOPIC, value, task.id.encode(), partition=0)

    async def _run(
        self,
        admin: AsyncAdmin,
        task_id: str,
        edit: EditFunction | None,
        on_progress: OnProgress | None,
    ) -> RedriveTask:
        topic = TaskTopic(self._clients, admin)
        source = (await self.task(task_id)).plan.source
        sending = Sending(self._clients, source, task_id)
        try:
            # From here on nobody else sends letters of this topic, and all that was sent is known.
            await sending.start()
            book = await topic.read(wait_until_stable=True)
            task = require_task(book, task_id)
            if task.progress.state.is_final:
                # The runner that was thought to be gone has ended it meanwhile.
                return task
            done = done_ranges(book, source, task.source_id)
            judge = Judge(task.plan, Targets(admin), done, edit)
            ranges = {
                partition: GrowingRanges(*book.last_chunk(task_id, partition))
                for partition in task.spans
            }
            async with (
                self._clients.letter_consumer() as letters,
                self._clients.order_consumer() as ordering,
            ):
                reader = LetterReader(letters, source, left_of(task))
                orders = Orders(ordering, task, book.end)
                runner = Runner(
                    *(task, self._clients, sending, judge, reader, orders, ranges, on_progress)
                )
                return await runner.run()
        finally:
            await sending.close()
