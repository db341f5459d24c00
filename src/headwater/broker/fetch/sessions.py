"""The sessions of all readers, as many as `max.incremental.fetch.session.cache.slots` allows.

When the cache is full a new session takes the place of one that has not been used for two minutes,
or, after the same time, of one with fewer partitions: that saves more. A broker's session never
makes room for a consumer's, and is nobody's but that broker's: whoever else names it hears that
there is no such session. A reader that gets no session is served all the same; it goes on naming
all of its partitions.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from headwater.base.errors import ErrorCode, KafkaError
from headwater.broker.fetch.replica_session import ReplicaSession
from headwater.broker.fetch.session import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    FetchSession,
    SessionKey,
)
from headwater.replication.fetch import CONSUMER_REPLICA_ID, FetchTarget
from headwater.replication.waiting.follower_watches import FollowerWatches

EVICTION_MS = 120_000
_SESSION_ID_MAX = 2**31 - 1


class FetchSessions:
    def __init__(
        self,
        slots: Callable[[], int],
        random_source: random.Random,
        watches: FollowerWatches | None = None,
    ) -> None:
        self._slots = slots
        self._random = random_source
        self._watches = FollowerWatches() if watches is None else watches
        #: In order of use, the one that was not used for longest first.
        self._sessions: dict[int, FetchSession] = {}
        self.evicted_count = 0

    def __len__(self) -> int:
        return len(self._sessions)

    @property
    def partition_count(self) -> int:
        return sum(map(len, self._sessions.values()))

    def continue_session(
        self,
        session_id: int,
        epoch: int,
        targets: Sequence[FetchTarget],
        forgotten: Sequence[SessionKey],
        *,
        by_id: bool,
        replica_id: int = CONSUMER_REPLICA_ID,
        now_ms: int,
    ) -> FetchSession:
        """The session of an incremental request, brought up to date with it."""
        session = self._find(session_id, replica_id)
        if session is None:
            raise KafkaError(
                ErrorCode.FETCH_SESSION_ID_NOT_FOUND, f"There is no fetch session {session_id}."
            )
        if session.by_id != by_id:
            raise KafkaError(
                ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
                "The session names its topics in another way than the request.",
            )
        session.check_epoch(epoch)
        session.update(targets, forgotten)
        session.advance(now_ms)
        self._sessions[session_id] = self._sessions.pop(session_id)
        return session

    def start_session(
        self,
        targets: Sequence[FetchTarget],
        *,
        by_id: bool,
        replica_id: int = CONSUMER_REPLICA_ID,
        now_ms: int,
    ) -> FetchSession | None:
        """A new session for a full request, if there is room for it and something to remember."""
        is_follower = replica_id != CONSUMER_REPLICA_ID
        if not targets or not self._make_room(len(targets), is_follower, now_ms):
            return None
        session_id = self._new_id()
        if is_follower:
            session: FetchSession = ReplicaSession(
                session_id,
                targets,
                by_id=by_id,
                now_ms=now_ms,
                replica_id=replica_id,
                watches=self._watches,
            )
        else:
            session = FetchSession(session_id, targets, by_id=by_id, now_ms=now_ms)
        self._sessions[session_id] = session
        return session

    def close_session(self, session_id: int, replica_id: int = CONSUMER_REPLICA_ID) -> None:
        """The reader is done with it."""
        session = self._find(session_id, replica_id)
        if session is not None:
            self._close(session)

    def _find(self, session_id: int, replica_id: int) -> FetchSession | None:
        session = self._sessions.get(session_id)
        return session if session is not None and session.replica_id == replica_id else None

    def _close(self, session: FetchSession) -> None:
        del self._sessions[session.session_id]
        session.close()

    def _new_id(self) -> int:
        while True:
            session_id = self._random.randint(1, _SESSION_ID_MAX)
            if session_id not in self._sessions:
                return session_id

    def _make_room(self, size: int, is_privileged: bool, now_ms: int) -> bool:
        slots = self._slots()
        if len(self._sessions) < slots:
            return True
        if not self._sessions:
            return False
        oldest = next(iter(self._sessions.values()))
        if now_ms - oldest.used_ms > EVICTION_MS:
            self._evict(oldest)
            return True
        candidates = [
            session
            for session in self._sessions.values()
            if is_privileged or not session.is_privileged
        ]
        smallest = min(candidates, key=lambda each: (each.is_privileged, len(each)), default=None)
        if smallest is None or now_ms - smallest.created_ms <= EVICTION_MS:
            return False
        if len(smallest) < size or (is_privileged and not smallest.is_privileged):
            self._evict(smallest)
            return True
        return False

    def _evict(self, session: FetchSession) -> None:
        self._close(session)
        self.evicted_count += 1


def is_incremental(epoch: int) -> bool:
    """Whether a request goes on with a session; the others name all that they want."""
    return epoch not in (INITIAL_EPOCH, FINAL_EPOCH)
