"""A client's half of incremental fetch sessions: what to leave out of the next fetch request.

Sans-io. With a session a broker remembers which partitions a client reads and from where, so a
request names only those whose offset has changed, and an answer only those with news: a client that
waits at the end of a thousand partitions sends an almost empty request. The session has an id that
the broker gives with the answer to a full request (epoch 0), and an epoch that grows with each
request. Whenever something is unclear the client starts again with a full request.
"""

import uuid
from collections.abc import Mapping
from typing import Final, NamedTuple

from headwater.base.errors import ErrorCode
from headwater.base.ids import TopicPartition

NO_SESSION_ID: Final = 0
FULL_EPOCH: Final = 0
WITHOUT_SESSION_EPOCH: Final = -1
EPOCH_MAX: Final = 2**31 - 1

#: Answers after which only a full request helps.
SESSION_ERRORS: Final = frozenset(
    {
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
    }
)


class FetchPosition(NamedTuple):
    """What is asked of a partition; a change of any field is worth telling."""

    topic_id: uuid.UUID
    offset: int
    #: The epoch that the reader takes the leader to be in; -1 if it does not care.
    leader_epoch: int = -1


class SessionRequest(NamedTuple):
    """What a request says about the session."""

    session_id: int
    epoch: int
    named: dict[TopicPartition, FetchPosition]
    forgotten: dict[TopicPartition, uuid.UUID]


class FetchSession:
    """The session with one broker; `use_session` False makes every request a full one."""

    def __init__(self, *, use_session: bool = True) -> None:
        self._use_session = use_session
        self._session_id = NO_SESSION_ID
        self._epoch = FULL_EPOCH
        self._told: dict[TopicPartition, FetchPosition] = {}

    def next_request(self, wanted: Mapping[TopicPartition, FetchPosition]) -> SessionRequest:
        """How to ask for `wanted`; the answer, or its absence, must be reported before the next."""
        if not self._use_session:
            return SessionRequest(NO_SESSION_ID, WITHOUT_SESSION_EPOCH, dict(wanted), {})
        told, self._told = self._told, dict(wanted)
        # A topic that was deleted and created again has another id, so it is another topic.
        moved = any(
            told[partition].topic_id != position.topic_id
            for partition, position in wanted.items()
            if partition in told
        )
        if moved:
            self._start_again()
        if self._epoch == FULL_EPOCH:
            self._told = dict(wanted)
            return SessionRequest(self._session_id, FULL_EPOCH, dict(wanted), {})
        return SessionRequest(
            self._session_id,
            self._epoch,
            {
                partition: position
                for partition, position in wanted.items()
                if told.get(partition) != position
            },
            {
                partition: position.topic_id
                for partition, position in told.items()
                if partition not in wanted
            },
        )

    def answered(self, error_code: int, session_id: int) -> None:
        """The answer's own error code and session id have come."""
        if error_code or session_id == NO_SESSION_ID:
            self._start_again()
            return
        self._session_id = session_id
        self._epoch = 1 if self._epoch == EPOCH_MAX else self._epoch + 1

    def failed(self) -> None:
        """No answer came, so it is unknown what the broker remembers."""
        self._start_again()

    def _start_again(self) -> None:
        self._session_id = NO_SESSION_ID
        self._epoch = FULL_EPOCH
        self._told = {}
