"""Handles records in the thread or task that polls, one after the other.

Where all goes well there is nothing between the handler and the list of records but a loop: no
lock, no future, no note. Only a record that fails costs more.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection
from typing import Final

from headwater.base.ids import TopicPartition
from headwater.client.consumer.record import ConsumerRecord
from headwater.delivery.worker.crews.crew import FAILURES, is_cancelled
from headwater.delivery.worker.decisions.unsettled import Letter
from headwater.delivery.worker.decisions.work import Work
from headwater.delivery.worker.dispatch import Handle

#: A pause before another attempt notices the end after so long.
_SLICE_S: Final = 0.05


class _Direct:
    def __init__(self, work: Work, handle: Handle) -> None:
        self._work = work
        self._handle = handle
        self._is_stopping = False
        self.failure: BaseException | None = None
        self.left: list[ConsumerRecord] = []

    def start(self) -> None:
        """There is nobody to be started."""

    def stop(self) -> None:
        self._is_stopping = True

    async def quiet(
        self, _timeout_s: float, _partitions: Collection[TopicPartition] | None = None
    ) -> bool:
        """Between two polls nothing is under way."""
        return True

    async def end(self) -> None:
        """What is under way is the caller's own."""

    def _end_batch(
        self,
        records: list[ConsumerRecord],
        left: list[ConsumerRecord],
        failed_count: int,
        now_s: float,
    ) -> None:
        self.left = left
        done = records[: len(records) - len(left)] if left else records
        if done:
            self._work.handled(done, failed_count, now_s)


class DirectCrew(_Direct):
    """For threads."""

    async def handle(self, records: list[ConsumerRecord]) -> None:
        handle = self._handle
        following = iter(records)
        left: list[ConsumerRecord] = []
        record: ConsumerRecord | None = None
        failed_count = 0
        try:
            while True:
                try:
                    for record in following:
                        handle(record)
                        if self._is_stopping:
                            break
                    break
                except FAILURES as error:
                    if record is None:
                        raise
                    outcome = self._try_again(record, error)
                    if outcome is None:
                        left = [record]
                        break
                    failed_count += outcome
        except BaseException:
            left = [] if record is None else [record]
            raise
        finally:
            left += following
            self._end_batch(records, left, failed_count, time.monotonic())

    def _try_again(self, record: ConsumerRecord, error: BaseException) -> int | None:
        """1 if it was sent on, 0 if it was handled after all, None if the end came before."""
        attempt = 1
        while True:
            decided = self._work.decide(record, error, attempt)
            if isinstance(decided, Letter):
                self._work.send_on(decided)
                return 1
            until_s = time.monotonic() + decided
            while (left_s := until_s - time.monotonic()) > 0:
                if self._is_stopping:
                    return None
                time.sleep(min(left_s, _SLICE_S))
            attempt += 1
            try:
                self._handle(record)
                return 0
            except FAILURES as another:
                error = another


class AsyncDirectCrew(_Direct):
    """For asyncio."""

    async def handle(self, records: list[ConsumerRecord]) -> None:
        handle = self._handle
        following = iter(records)
        left: list[ConsumerRecord] = []
        record: ConsumerRecord | None = None
        failed_count = 0
        try:
            while True:
                try:
                    for record in following:
                        await handle(record)
                        if self._is_stopping:
                            break
                    break
                except FAILURES as error:
                    if record is None or is_cancelled(error):
                        raise
                    outcome = await self._try_again(record, error)
                    if outcome is None:
                        left = [record]
                        break
                    failed_count += outcome
        except BaseException:
            left = [] if record is None else [record]
            raise
        finally:
            left += following
            now_s = asyncio.get_running_loop().time()
            self._end_batch(records, left, failed_count, now_s)

    async def _try_again(self, record: ConsumerRecord, error: BaseException) -> int | None:
        """1 if it was sent on, 0 if it was handled after all, None if the end came before."""
        attempt = 1
        loop = asyncio.get_running_loop()
        while True:
            decided = self._work.decide(record, error, attempt)
            if isinstance(decided, Letter):
                self._work.send_on(decided)
                return 1
            until_s = loop.time() + decided
            while (left_s := until_s - loop.time()) > 0:
                if self._is_stopping:
                    return None
                await asyncio.sleep(min(left_s, _SLICE_S))
            attempt += 1
            try:
                await self._handle(record)
                return 0
            except FAILURES as another:
                if is_cancelled(another):
                    raise
                error = another
