"""Runs a task to its end: reads letters, sends them in transactions, and obeys orders.

A crash at any moment leaves a task whose last committed transaction says which letters were sent,
and that is where the next runner begins.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from headwater.base.errors import KafkaError
from headwater.client.consumer.record import ConsumerRecord
from headwater.delivery.redrive.clients import Clients
from headwater.delivery.redrive.judgement import Judge, Judged
from headwater.delivery.redrive.letters.letter_reader import LetterReader, Span
from headwater.delivery.redrive.outgoing import Outgoing
from headwater.delivery.redrive.pace import Pace
from headwater.delivery.redrive.sending import RefusedError, Sending, TakenOverError
from headwater.delivery.redrive.tasks.offset_ranges import GrowingRanges
from headwater.delivery.redrive.tasks.task import BEAT_S, Progress, RedriveTask, State, Wanted
from headwater.delivery.redrive.tasks.task_topic import Orders

#: How long a batch waits for more letters, and how often orders are looked for.
_READ_S: Final = 0.2
_ORDERS_S: Final = 0.25
#: No more bytes of letters than this are in one transaction, but for a single one.
_BATCH_BYTES_MAX: Final = 16 << 20

#: Is told how far the task is, about after each transaction.
OnProgress = Callable[[RedriveTask], object]


class _StoppedError(Exception):
    """The order came to stop."""


class Runner:
    """Owns the progress of a task while it runs it."""

    def __init__(
        self,
        task: RedriveTask,
        clients: Clients,
        sending: Sending,
        judge: Judge,
        reader: LetterReader,
        orders: Orders,
        ranges: Mapping[int, GrowingRanges],
        on_progress: OnProgress | None,
    ) -> None:
        self._task = task
        self._clients = clients
        self._sending = sending
        self._judge = judge
        self._reader = reader
        self._orders = orders
        self._on_progress = on_progress
        self._pace = Pace(task.plan.rate)
        self._progress = task.progress.copy()
        self._progress.error = None
        self._ranges = dict(ranges)
        self._beat_at_s = 0.0
        #: Whether a transaction was begun of which nobody knows what became.
        self._is_doubtful = False

    async def run(self) -> RedriveTask:
        """The task as it is in the end: done or stopped. Errors leave one that can be resumed."""
        try:
            await self._tell(State.RUNNING)
            try:
                while not self._reader.is_done:
                    await self._obey()
                    await self._handle(await self._next_records())
            except _StoppedError:
                await self._tell(State.STOPPED)
            else:
                self._progress.positions.update(self._reader.positions)
                await self._tell(State.DONE)
        except TakenOverError:
            raise
        except (asyncio.CancelledError, KeyboardInterrupt):
            await self._leave(State.INTERRUPTED, None)
            raise
        except Exception as error:
            await self._leave(State.FAILED, str(error) or type(error).__name__)
            raise
        return self._now()

    # -- letters ---------------------------------------------------------------------------------

    async def _next_records(self) -> list[ConsumerRecord]:
        """A batch of letters: as many as make a transaction worth its while."""
        records: list[ConsumerRecord] = []
        size_bytes = 0
        limit = self._pace.read_letters
        while len(records) < limit and size_bytes < _BATCH_BYTES_MAX and not self._reader.is_done:
            polled = await self._reader.read(limit - len(records), _READ_S)
            if not polled:
                break
            records += polled
            size_bytes += sum(len(record.value or b"") for record in polled)
        return records

    async def _handle(self, records: Sequence[ConsumerRecord]) -> None:
        positions = dict(self._reader.positions)
        if not records:
            self._progress.positions.update(positions)
            return
        judged = await self._judge.judge(records)
        for portion in _portions(judged, self._pace.sent_letters):
            sent_count = sum(each.outgoing is not None for each in portion)
            wait_s = self._pace.wait_s(self._clients.now_s()) if sent_count else 0.0
            if wait_s > 0:
                await self._wait(wait_s)
            await self._send(portion)
            self._pace.sent(sent_count, self._clients.now_s())
        # Behind the last letter: there may be offsets that are no letters.
        self._progress.positions.update(positions)

    async def _send(self, judged: Sequence[Judged]) -> None:
        """All in one transaction; if one is refused, by halves until it is found."""
        progress, ranges = self._progress.copy(), _copied(self._ranges, judged)
        progress.state = State.RUNNING
        progress.beat_ms = self._clients.wall_ms()
        for each in judged:
            _count(each, progress, ranges)
        letters = [each.outgoing for each in judged if each.outgoing is not None]
        try:
            await self._transact(letters, progress, ranges)
        except RefusedError as refused:
            if not letters:
                raise refused.error from None
            if len(letters) == 1:
                judged = [_refused(each, str(refused)) for each in judged]
                await self._send(judged)
                return
            middle = len(judged) // 2
            await self._send(judged[:middle])
            await self._send(judged[middle:])

    async def _transact(
        self,
        letters: Sequence[Outgoing],
        progress: Progress,
        ranges: Mapping[int, GrowingRanges],
    ) -> None:
        """What was begun is ended before this task is: else nobody knew how far it is."""
        self._is_doubtful = True
        work = asyncio.ensure_future(self._sending.transact(letters, progress, ranges))
        try:
            await asyncio.shield(work)
        except asyncio.CancelledError:
            await asyncio.wait([work])
            if work.exception() is None:
                self._settled(progress, ranges)
            raise
        except RefusedError:
            self._is_doubtful = False
            raise
        self._settled(progress, ranges)

    def _settled(self, progress: Progress, ranges: Mapping[int, GrowingRanges]) -> None:
        self._is_doubtful = False
        self._progress = progress
        self._ranges |= ranges
        self._beat_at_s = self._clients.now_s()
        if self._on_progress is not None:
            self._on_progress(self._now())

    # -- orders ----------------------------------------------------------------------------------

    async def _obey(self) -> None:
        """Return when the task is wanted to run; `_StoppedError` if it is wanted no more."""
        while True:
            ordered = await self._orders.latest()
            wanted = Wanted.STOPPED if ordered is None else ordered.wanted
            if wanted is Wanted.STOPPED:
                raise _StoppedError
            state = State.RUNNING if wanted is Wanted.RUNNING else State.PAUSED
            has_changed = state is not self._progress.state
            if has_changed or self._clients.now_s() - self._beat_at_s >= BEAT_S:
                await self._tell(state)
            if state is State.RUNNING:
                return
            await asyncio.sleep(_ORDERS_S)

    async def _wait(self, wait_s: float) -> None:
        """Let time pass, and obey meanwhile."""
        end_s = self._clients.now_s() + wait_s
        while (left_s := end_s - self._clients.now_s()) > 0:
            await asyncio.sleep(min(left_s, _ORDERS_S))
            await self._obey()

    # -- what is told ----------------------------------------------------------------------------

    async def _tell(self, state: State, error: str | None = None) -> None:
        """Write how the task is, in a transaction of its own."""
        progress = self._progress.copy()
        progress.state, progress.error, progress.beat_ms = state, error, self._clients.wall_ms()
        await self._transact([], progress, {})

    async def _leave(self, state: State, error: str | None) -> None:
        """Tell why it ends. If it is not known how far it is, its silence has to tell."""
        if self._is_doubtful:
            return
        with contextlib.suppress(KafkaError, RefusedError):
            await self._tell(state, error)

    def _now(self) -> RedriveTask:
        return replace(self._task, progress=self._progress.copy())


def left_of(task: RedriveTask) -> dict[int, Span]:
    """What is still to be read."""
    positions = task.progress.positions
    return {
        partition: Span(max(span.first, positions.get(partition, span.first)), span.end)
        for partition, span in task.spans.items()
    }


def _portions(judged: Sequence[Judged], sent_max: int) -> Iterator[Sequence[Judged]]:
    """Letters in their order, of which so many are sent at a time; the others go along for free."""
    first = sent_count = 0
    for at, each in enumerate(judged):
        if each.outgoing is None:
            continue
        if sent_count == sent_max:
            yield judged[first:at]
            first, sent_count = at, 0
        sent_count += 1
    yield judged[first:]


def _count(judged: Judged, progress: Progress, ranges: Mapping[int, GrowingRanges]) -> None:
    counts, record = progress.counts, judged.letter.record
    counts.read += 1
    setattr(counts, judged.outcome, getattr(counts, judged.outcome) + 1)
    if judged.reason is not None:
        progress.complain(judged.reason)
    progress.positions[record.partition] = record.offset + 1
    if judged.outgoing is None:
        ranges[record.partition].passed_over()
    else:
        ranges[record.partition].sent(record.offset)


def _refused(judged: Judged, reason: str) -> Judged:
    if judged.outgoing is None:
        return judged
    return judged._replace(outgoing=None, outcome="refused", reason=reason)


def _copied(
    ranges: Mapping[int, GrowingRanges], judged: Sequence[Judged]
) -> dict[int, GrowingRanges]:
    """Those of the partitions that the letters are of."""
    partitions = dict.fromkeys(each.letter.record.partition for each in judged)
    return {
        partition: ranges[partition].copy() if partition in ranges else GrowingRanges()
        for partition in partitions
    }
