"""A partition of `__audit`: what is published of each source, and which rows may follow.

A source is a log that somebody counts. Its rows tell of stretches of offsets that follow each
other: the next stretch begins where the last one ended, or it is refused. So a leader that was
replaced, an answer that was lost and a publisher that begins anew can neither count anything twice
nor leave anything out, and the rows need no other order than that.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from headwater.audit.rows import NO_EPOCH, AuditRecord, read_progress
from headwater.base.errors import ErrorCode, KafkaError
from headwater.cluster.image.change import ImageChange
from headwater.coordinator.outcome import Change, Outcome, ProducerIdentity
from headwater.coordinator.stored_record import StoredRecord

NOTHING_PUBLISHED = -1


class Stretch(NamedTuple):
    """What was counted of a source in [from_offset, to_offset); without records, a question."""

    source: str
    from_offset: int
    to_offset: int
    records: Sequence[AuditRecord]


class Published(NamedTuple):
    """Up to where a source is published, and the epoch of the leader that counted it."""

    offset: int
    leader_epoch: int


_NOTHING: Final = Published(NOTHING_PUBLISHED, NO_EPOCH)


class AuditShard:
    """State that is made of the partition's records alone."""

    def __init__(self) -> None:
        self._published: dict[str, Published] = {}

    def publish(self, stretches: Sequence[Stretch]) -> Change[list[Published]]:
        """Write what follows what is published; answers for each up to where its source is then."""
        published: list[Published] = []
        records: list[StoredRecord] = []
        accepted: dict[str, Published] = {}
        for stretch in stretches:
            known = self._published.get(stretch.source, _NOTHING)
            known = accepted.get(stretch.source, known)
            if stretch.records and known.offset in (NOTHING_PUBLISHED, stretch.from_offset):
                known = accepted[stretch.source] = _checked(stretch)
                records.extend(StoredRecord(*record) for record in stretch.records)
            published.append(known)
        return Change(published, records)

    # -- records ---------------------------------------------------------------------------------

    def replay(
        self, record: StoredRecord, offset: int, producer: ProducerIdentity | None, now_ms: int
    ) -> None:
        progress = None if record.value is None else read_progress(record.value)
        if progress is not None:
            self._published[progress.source] = Published(*progress[1:])

    def replay_transaction_end(self, producer: ProducerIdentity, *, is_committed: bool) -> None:
        """Nobody writes here in a transaction."""

    def on_loaded(self, now_ms: int) -> None:
        """There is nothing to wait for."""

    def on_image(self, change: ImageChange, now_ms: int) -> list[Outcome]:
        """A source that is gone is forgotten when its rows are."""
        return []

    def close(self, error: KafkaError) -> None:
        """Nobody is parked here."""

    def stored_state(self) -> object:
        return dict(self._published)


def _checked(stretch: Stretch) -> Published:
    """What its rows say is published then: they have to tell of the stretch that they come with."""
    published = _NOTHING
    for record in stretch.records:
        progress = read_progress(record.value)
        if progress is not None:
            published = Published(*progress[1:])
        if progress is None or progress[:2] != (stretch.source, stretch.to_offset):
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"A row of {stretch.source} does not tell of its stretch up to "
                f"{stretch.to_offset}.",
            )
    return published
