"""Moving: the dead letters of one partition are brought to their topic, each once.

Only the leader moves. It opens a session, which ends whatever an earlier leader had under way, so
that its log says of each letter whether it waits or is gone; then it moves some letters at a time.
Before it commits, it makes sure that its log is still the partition's. A move counts when the
marker of its transaction has arrived in the log: until then the next round waits, or the same
letters would be moved again.

While the topic cannot take them, letters wait in their partition, within `delay.pending.max.bytes`,
and hold up nothing else. A letter that the topic refuses for itself is found by moving fewer and
fewer, left where it is, and tried again after a while.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from itertools import islice
from typing import Final, Protocol

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.threads import RunInThread
from headwater.delay.dead_letters.moves import DeadLetter, DeadLetterMoves, MoveSession, dead_letter
from headwater.delay.delay_state import DelayState
from headwater.delay.message_reads import plan_reads, read_places
from headwater.replication.partition.partition import Partition

_LETTERS_MAX: Final = 500
_PAUSE_MIN_S: Final = 0.5
_PAUSE_MAX_S: Final = 15.0
#: The marker of a transaction comes within moments.
_LOOK_INTERVAL_S: Final = 0.01
_MARKER_TIMEOUT_S: Final = 30.0
#: A letter that was refused is tried again after so long.
_REFUSED_S: Final = 60.0
#: A session that has nothing to do is closed.
_IDLE_S: Final = 60.0
#: What a topic says of a letter that it would say again.
_REFUSALS: Final = frozenset(
    {
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.INVALID_RECORD,
        ErrorCode.INVALID_TIMESTAMP,
    }
)

_logger = logging.getLogger(__name__)


class AsksState(Protocol):
    """The partition's `PartitionDelays`."""

    def ready_state(self) -> DelayState:
        """The state, with all that the log says; `KafkaError` if this broker cannot tell."""
        ...


class Moving:
    """Of one partition. `run` ends when it leads no more, or when nothing has come for a while."""

    def __init__(
        self,
        partition: Partition,
        moves: DeadLetterMoves,
        run_in_thread: RunInThread,
        delays: AsksState,
    ) -> None:
        self._partition = partition
        self._moves = moves
        self._run_in_thread = run_in_thread
        self._delays = delays
        self._wake = asyncio.Event()
        self._session: MoveSession | None = None
        self._letters_max = _LETTERS_MAX
        #: Refused alone: by the offset that names them, when they may be tried again.
        self._refused: dict[int, float] = {}
        self.moved_count = 0
        #: Why letters wait, as a sentence; empty if they do not.
        self.trouble = ""

    def wake(self) -> None:
        """There are dead letters."""
        self._wake.set()

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        pause_s, moved_at = _PAUSE_MIN_S, loop.time()
        try:
            while self._is_wanted and loop.time() < moved_at + _IDLE_S:
                try:
                    has_moved = await self._round()
                except (KafkaError, OSError) as error:
                    await self._close_session()
                    if self._partition.is_leader:
                        self._tell(str(error))
                    await asyncio.sleep(pause_s)
                    pause_s = min(2 * pause_s, _PAUSE_MAX_S)
                    continue
                pause_s = _PAUSE_MIN_S
                if has_moved:
                    moved_at = loop.time()
                    continue
                self._wake.clear()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._wake.wait(), _PAUSE_MIN_S)
        finally:
            await self._close_session()

    @property
    def _is_wanted(self) -> bool:
        return self._partition.is_leader and not self._partition.is_removed

    def _tell(self, sentence: str) -> None:
        if sentence != self.trouble:  # It is told once, not every second.
            self.trouble = sentence
            _logger.error("Dead letters of %s wait: %s", self._partition.topic_partition, sentence)

    async def _round(self) -> bool:
        """Move some letters; false if there are none that can be moved."""
        if not self._delays.ready_state().dead:
            return False
        target = self._partition.log.config.delay.retry.dead_letter_topic
        refusal = self._moves.refusal(target)
        if refusal is not None:
            raise KafkaError(ErrorCode.POLICY_VIOLATION, refusal)
        if self._session is None:
            self._session = await self._moves.open(self._partition.topic_partition)
        letters = await self._next_letters()
        if not letters:
            return False
        try:
            await self._session.move(
                target, letters, lambda offset: self._still_wait(letters, offset)
            )
        except KafkaError as error:
            if error.code not in _REFUSALS:
                raise
            await self._close_session()
            self._blame(letters, error)
            return True
        await self._await_marker(letters)
        self._letters_max = min(2 * self._letters_max, _LETTERS_MAX)
        if not self._refused:
            self.trouble = ""
        self.moved_count += len(letters)
        return True

    def _still_wait(self, letters: list[DeadLetter], offset: int) -> bool:
        """Whether the letters wait, as far as the partition's one true log says up to an offset.

        Who was replaced as the leader and has not heard of it knows letters that are moved by now.
        Only what is in front of its high watermark is surely the log that its successor has.
        """
        if not self._partition.is_leader or self._partition.high_watermark <= offset:
            return False
        dead = self._delays.ready_state().dead
        return all(letter.offset in dead for letter in letters)

    def _blame(self, letters: list[DeadLetter], error: KafkaError) -> None:
        """One of them was refused: the next are fewer, until it stands alone."""
        if len(letters) > 1:
            self._letters_max = max(1, len(letters) // 2)
            return
        offset = letters[0].offset
        self._refused[offset] = asyncio.get_running_loop().time() + _REFUSED_S
        self._tell(f"The letter at offset {offset} is refused. {error}")

    async def _next_letters(self) -> list[DeadLetter]:
        """The letters that have waited longest, read in a thread."""
        log = self._partition.log
        state = self._delays.ready_state()
        if self._refused:
            now = asyncio.get_running_loop().time()
            self._refused = {
                offset: until
                for offset, until in self._refused.items()
                if until > now and offset in state.dead
            }
        waiting = (each for each in state.dead.items() if each[0] not in self._refused)
        keys = dict(islice(waiting, self._letters_max))
        places, _ = plan_reads(log, [key.offset for key in keys.values()])
        if not places:
            return []
        messages = await self._run_in_thread(lambda: read_places(places))
        dead = self._delays.ready_state().dead
        group = log.config.delay.retry.group
        # Meanwhile one may have been cancelled, or written anew elsewhere.
        return [
            dead_letter(self._partition.topic_partition, message, group)
            for message in messages
            if message.id_offset in dead and dead[message.id_offset].offset == message.offset
        ]

    async def _await_marker(self, letters: list[DeadLetter]) -> None:
        deadline = asyncio.get_running_loop().time() + _MARKER_TIMEOUT_S
        while any(each.offset in self._delays.ready_state().dead for each in letters):
            if asyncio.get_running_loop().time() > deadline:
                raise KafkaError(
                    ErrorCode.REQUEST_TIMED_OUT,
                    "The end of a transaction has not arrived in the partition.",
                )
            await asyncio.sleep(_LOOK_INTERVAL_S)

    async def _close_session(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()
