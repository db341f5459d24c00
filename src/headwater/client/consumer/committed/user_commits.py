"""A consumer's commits: on demand, and by themselves every `auto.commit.interval.ms`.

Lives on the loop, except where it says otherwise. What users gave to be called back (callbacks of
asynchronous commits, interceptors) waits until the polling thread runs it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Callable, Mapping
from typing import Final, Protocol, TypeAlias

from headwater.base.errors import KafkaError
from headwater.base.ids import TopicPartition
from headwater.client.consumer.committed.offset_and_metadata import OffsetAndMetadata
from headwater.client.consumer.interceptors import Interceptors
from headwater.client.consumer.metrics import ConsumerMetrics
from headwater.client.errors import DeadlineError
from headwater.client.given_items import given_mapping, given_number, given_partition
from headwater.client.machines.completion import Completion

_logger = logging.getLogger("headwater.client")

Offsets: TypeAlias = Mapping[TopicPartition, OffsetAndMetadata]
#: Called with the offsets and the error, or None if they were committed.
CommitCallback: TypeAlias = Callable[[Offsets, KafkaError | None], object]

_EXAMPLE: Final = "{TopicPartition('orders', 0): 42}"


class Commits(Protocol):
    """The machine that commits."""

    def commit(self, offsets: Offsets, now_s: float, *, is_retried: bool) -> Completion[None]: ...

    def settled(self) -> Completion[None]:
        """Done when something has come of all commits so far."""
        ...


class GroupCommits:
    def __init__(
        self,
        commits: Commits,
        *,
        auto_interval_s: float | None,
        interceptors: Interceptors,
        metrics: ConsumerMetrics,
        wake: Callable[[], None],
        notify: Callable[[], None],
        on_committed: Callable[[Offsets], None] | None = None,
    ) -> None:
        self._commits = commits
        self._auto_interval_s = auto_interval_s
        self._auto_due_s: float | None = None
        self._interceptors = interceptors
        self._metrics = metrics
        self._wake = wake
        self._notify = notify
        #: Told at once, on the loop.
        self._on_committed = on_committed
        self._loop = asyncio.get_running_loop()
        self._callbacks: deque[Callable[[], object]] = deque()

    @property
    def is_automatic(self) -> bool:
        return self._auto_interval_s is not None

    # -- the polling thread's side ---------------------------------------------------------------

    def is_due(self, now_s: float) -> bool:
        """Whether it is time for an automatic commit; then the next one is an interval later."""
        if self._auto_interval_s is None:
            return False
        is_first, due_s = self._auto_due_s is None, self._auto_due_s or 0.0
        if not is_first and now_s < due_s:
            return False
        self._auto_due_s = now_s + self._auto_interval_s
        return not is_first

    def run_callbacks(self) -> None:
        """Call back who waits for that."""
        while self._callbacks:
            self._callbacks.popleft()()

    @property
    def has_callbacks(self) -> bool:
        return bool(self._callbacks)

    # -- the loop's side -------------------------------------------------------------------------

    def commit_nowait(self, offsets: Offsets, callback: CommitCallback | None) -> None:
        """Commit without waiting, and without trying again: a later commit would be undone."""
        self._begin(offsets, is_retried=False, callback=callback)

    def commit_automatically(self, offsets: Offsets) -> None:
        """What an automatic commit does between rebalances."""
        if offsets and self.is_automatic:
            self._begin(offsets, is_retried=False, callback=_warn)

    async def commit(self, offsets: Offsets, timeout_s: float) -> None:
        """Commit, trying again what may pass; raises what does not."""
        if not offsets:
            return
        completion = self._begin(offsets, is_retried=True, callback=None)
        try:
            async with asyncio.timeout(timeout_s):
                await completion.wait()
        except TimeoutError:
            raise DeadlineError(f"Committing did not succeed within {timeout_s:g} s.") from None

    async def commit_before_rebalance(self, offsets: Offsets, timeout_s: float) -> None:
        """An automatic commit that waits, and is only logged if it fails."""
        if self._auto_interval_s is None:
            return
        try:
            await self.commit(offsets, timeout_s)
        except KafkaError as error:
            _warn(offsets, error)

    async def settle(self, timeout_s: float) -> None:
        """Wait for all commits under way: after a rebalance they would undo the next owner's."""
        completion = self._commits.settled()
        self._wake()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await completion.wait()

    def _begin(
        self, offsets: Offsets, *, is_retried: bool, callback: CommitCallback | None
    ) -> Completion[None]:
        sent_s = self._loop.time()
        completion = self._commits.commit(offsets, sent_s, is_retried=is_retried)

        def done(completion: Completion[None]) -> None:
            error = completion.error
            now_s = self._loop.time()
            self._metrics.committed(now_s - sent_s, now_s)
            if error is None and self._on_committed is not None:
                self._on_committed(offsets)
            if error is None and self._interceptors:
                self._call_back(lambda: self._interceptors.on_commit(offsets))
            if callback is not None:
                told = error if error is None or isinstance(error, KafkaError) else _unknown(error)
                self._call_back(lambda: callback(offsets, told))

        completion.when_done(done)
        self._wake()
        return completion

    def _call_back(self, call: Callable[[], object]) -> None:
        self._callbacks.append(call)
        self._notify()


def as_offsets(
    offsets: Mapping[TopicPartition, OffsetAndMetadata | int],
) -> dict[TopicPartition, OffsetAndMetadata]:
    """Offsets as users may give them, who need not have metadata for each."""
    return {
        given_partition(partition): _as_offset(offset)
        for partition, offset in given_mapping(offsets, _EXAMPLE).items()
    }


def _as_offset(given: OffsetAndMetadata | int) -> OffsetAndMetadata:
    whole = OffsetAndMetadata(*given) if isinstance(given, tuple) else OffsetAndMetadata(given)
    return whole._replace(offset=given_number(whole.offset, "The offset", lowest=0))


def _warn(offsets: Offsets, error: KafkaError | None) -> None:
    if error is not None:
        what = "one offset" if len(offsets) == 1 else f"{len(offsets)} offsets"
        _logger.warning("The automatic commit of %s failed: %s", what, error)


def _unknown(error: BaseException) -> KafkaError:
    return KafkaError(repr(error))
