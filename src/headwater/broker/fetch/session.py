"""An incremental fetch session: what one reader fetches, remembered by the broker.

A consumer of a thousand partitions would otherwise name all of them in every request, and be told
of all of them in every answer, though hardly any has changed. With a session a request names only
what changes, and an answer only the partitions that have something new: records, an error, another
high watermark or log start.

Partitions are served in the order in which they stand here. One that gave records goes to the end,
so that a busy partition cannot starve the others when the answer is full.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence

from headwater.base.errors import ErrorCode, KafkaError
from headwater.replication.fetch import CONSUMER_REPLICA_ID, FetchedPartition, FetchTarget
from headwater.replication.partition.partition_read import NOT_DELAYED

#: A partition of a session: its topic, by id or by name as the reader has it, and its number.
SessionKey = tuple[uuid.UUID | str, int]

INITIAL_EPOCH = 0
FINAL_EPOCH = -1
INVALID_SESSION_ID = 0
_EPOCH_MAX = 2**31 - 1


def key_of(target: FetchTarget, *, by_id: bool) -> SessionKey:
    return (target.topic_id if by_id else target.topic, target.partition)


class _SessionPartition:
    """One partition of a session: what is wanted of it, and what the reader was told last."""

    __slots__ = ("high_watermark", "log_start_offset", "shown_end", "target")

    def __init__(self, target: FetchTarget) -> None:
        self.target = target
        self.high_watermark = -1
        self.log_start_offset = -1
        #: Only followers are told.
        self.shown_end = NOT_DELAYED

    def has_news(self, fetched: FetchedPartition) -> bool:
        """Whether the reader must hear of this; takes note of what it then knows."""
        if fetched.error is not None:
            # An error is repeated until it is gone.
            self.high_watermark = self.log_start_offset = -1
            return True
        read = fetched.read
        if read is None:
            return True
        has_news = (
            read.log_read.size > 0
            or read.high_watermark != self.high_watermark
            or read.log_start_offset != self.log_start_offset
            or read.shown_end != self.shown_end
        )
        self.high_watermark = read.high_watermark
        self.log_start_offset = read.log_start_offset
        self.shown_end = read.shown_end
        return has_news


class FetchSession:
    def __init__(
        self,
        session_id: int,
        targets: Sequence[FetchTarget],
        *,
        by_id: bool,
        now_ms: int,
        replica_id: int = CONSUMER_REPLICA_ID,
    ) -> None:
        self.session_id = session_id
        self.by_id = by_id
        #: The broker whose session it is, if it is one's.
        self.replica_id = replica_id
        self.created_ms = now_ms
        self.used_ms = now_ms
        self.epoch = INITIAL_EPOCH + 1
        self._partitions: dict[SessionKey, _SessionPartition] = {}
        self.update(targets, ())

    def __len__(self) -> int:
        return len(self._partitions)

    @property
    def is_privileged(self) -> bool:
        """Brokers' sessions are kept rather than consumers'."""
        return self.replica_id != CONSUMER_REPLICA_ID

    def update(self, targets: Iterable[FetchTarget], forgotten: Iterable[SessionKey]) -> None:
        """What the reader wants differently from now on."""
        for target in targets:
            key = key_of(target, by_id=self.by_id)
            known = self._partitions.get(key)
            if known is None:
                self._partitions[key] = _SessionPartition(target)
            else:
                known.target = target
        for key in forgotten:
            self._partitions.pop(key, None)

    def check_epoch(self, epoch: int) -> None:
        """Requests of a session are numbered, so that a lost or repeated one is noticed."""
        if epoch != self.epoch:
            raise KafkaError(
                ErrorCode.INVALID_FETCH_SESSION_EPOCH,
                f"The session's next epoch is {self.epoch}, and the request has {epoch}.",
            )

    def close(self) -> None:
        """The session is over."""

    def advance(self, now_ms: int) -> None:
        self.used_ms = now_ms
        self.epoch = 1 if self.epoch == _EPOCH_MAX else self.epoch + 1

    def targets(self) -> list[FetchTarget]:
        """All that the reader wants, in order of service."""
        return [partition.target for partition in self._partitions.values()]

    def take_note(self, fetched: Iterable[FetchedPartition]) -> list[FetchedPartition]:
        """Which partitions have news; those that gave records are served last the next time."""
        news = []
        for each in fetched:
            key = key_of(each.target, by_id=self.by_id)
            partition = self._partitions.get(key)
            if partition is not None and partition.has_news(each):
                news.append(each)
                if each.size_bytes > 0:
                    del self._partitions[key]
                    self._partitions[key] = partition
        return news
