"""What a partition remembers of all its producers, and which of its transactions are open.

An append takes three steps, so that a failed write leaves no trace here:

    pending = states.prepare(batches, origin=origin)   # raises what the producer must hear
    ... if pending.duplicate: answer with its offsets; else write the bytes ...
    states.apply(pending)
    for completed in pending.completed:
        ... if aborted: write it to the transaction index with states.last_stable_offset(completed)
        states.complete_transaction(completed)

The last step comes after the transaction index was written, because it lets the last stable offset
move past the transaction: a reader must then find the abort in the index.

The state is that of a prefix of the log, [log start, `end_offset`). It is written down as snapshots
now and then; loading takes the newest snapshot and lets the log behind it be replayed through the
same three steps. Only `take_snapshot`, `truncate_and_reload` and `truncate_fully` touch files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from headwater.base.checks import check
from headwater.base.ids import TopicPartition
from headwater.storage.disk.files import FileSystem
from headwater.storage.producers.entry import (
    BATCHES_RETAINED_MAX,
    SEQUENCE_MAX,
    AppendedBatch,
    AppendOrigin,
    BatchMetadata,
    ProducerEntry,
    check_data,
    check_marker,
)
from headwater.storage.producers.open_transactions import CompletedTransaction, OpenTransactions
from headwater.storage.producers.snapshot import (
    load_latest_snapshot,
    remove_snapshots_above,
    remove_snapshots_below,
    write_snapshot,
)
from headwater.storage.producers.transaction_verification import Verifications
from headwater.wire.delayed.copies import DELIVERY_PRODUCER_ID
from headwater.wire.records import (
    NO_TIMESTAMP,
    BatchHeader,
    ControlType,
    EndTransactionMarker,
)

#: Kafka's default of `producer.id.expiration.ms`.
PRODUCER_ID_EXPIRATION_MS: Final = 86_400_000


class PendingAppend:
    """What an append will change, worked out but not in force."""

    __slots__ = ("base_offset", "completed", "duplicate", "end_offset", "entries", "started")

    def __init__(self, base_offset: int) -> None:
        #: The end of the state that it builds on; applying it to another one is noticed.
        self.base_offset = base_offset
        self.end_offset = base_offset
        #: Set if the batch was written before: then nothing is to be written or applied, and the
        #: producer, which has not heard that it was, is told the offsets that it got then.
        self.duplicate: BatchMetadata | None = None
        self.entries: dict[int, ProducerEntry] = {}
        #: First offset and producer id of each transaction that begins.
        self.started: list[tuple[int, int]] = []
        self.completed: list[CompletedTransaction] = []


class ProducerStates:
    """The producers of one partition. Its owner is the partition's log."""

    def __init__(
        self,
        partition: TopicPartition,
        *,
        producer_id_expiration_ms: int = PRODUCER_ID_EXPIRATION_MS,
    ) -> None:
        self.partition = partition
        self.producer_id_expiration_ms = producer_id_expiration_ms
        #: One past the last offset that is accounted for.
        self.end_offset = 0
        #: Where the newest snapshot stands; there is no point in another one at the same offset.
        self.snapshot_offset = 0
        #: Up to here the state is that of a snapshot, which has one batch of each producer.
        self.loaded_offset = 0
        #: The producers whose earlier batches were looked for since: see `forgotten_batches`.
        self.recalled: frozenset[int] = frozenset()
        #: Transactions whose coordinator is asked before they begin here.
        self.verifications = Verifications()
        self._entries: dict[int, ProducerEntry] = {}
        self._transactions = OpenTransactions()

    # -- looking ---------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[ProducerEntry]:
        return iter(self._entries.values())

    @property
    def is_empty(self) -> bool:
        return not self._entries and not self._transactions.has_unreplicated

    def entry(self, producer_id: int) -> ProducerEntry | None:
        return self._entries.get(producer_id)

    def has_open_transaction(self, producer_id: int, epoch: int) -> bool:
        """Whether a batch of this epoch would go on with a transaction that is open here."""
        entry = self._entries.get(producer_id)
        return (
            entry is not None
            and entry.transaction_first_offset is not None
            and entry.producer_epoch == epoch
        )

    @property
    def delivered_until_ms(self) -> int:
        """When the last delayed message that was delivered was due; -1 before the first."""
        entry = self._entries.get(DELIVERY_PRODUCER_ID)
        return NO_TIMESTAMP if entry is None else entry.last_timestamp

    @property
    def first_undecided_offset(self) -> int | None:
        """Where the oldest open transaction begins."""
        return self._transactions.first_undecided_offset

    @property
    def first_unstable_offset(self) -> int | None:
        """Where the oldest transaction begins that is open, or not known to be replicated.

        The last stable offset is this or the high watermark, whichever is smaller, and never
        before the log's start.
        """
        return self._transactions.first_unstable_offset

    # -- appending -------------------------------------------------------------------------------

    def prepare(self, batches: Iterable[AppendedBatch], *, origin: AppendOrigin) -> PendingAppend:
        """Work out what appending these batches in turn would change; raise if one is refused."""
        pending = PendingAppend(self.end_offset)
        for header, marker in batches:
            pending.end_offset = header.next_offset
            producer_id = header.producer_id
            if producer_id < 0 or (header.is_control and marker is None and not header.is_delayed):
                continue
            if producer_id == DELIVERY_PRODUCER_ID:
                pending.entries[producer_id] = ProducerEntry(producer_id).with_deliveries(header)
                continue
            entry = self._entries.get(producer_id)
            # What a client repeats can only be something that was written, so what this same
            # append brings does not count.
            if entry is not None and origin is AppendOrigin.CLIENT and marker is None:
                pending.duplicate = entry.find_duplicate(header)
                if pending.duplicate is not None:
                    return pending
            entry = pending.entries.get(producer_id, entry) or ProducerEntry(producer_id)
            if marker is None:
                check_data(entry, header, origin, self.partition)
                if entry.transaction_first_offset is None and header.is_transactional:
                    pending.started.append((header.base_offset, producer_id))
                entry = entry.with_data(header)
            else:
                entry = self._after_marker(pending, entry, header, marker, origin)
            pending.entries[producer_id] = entry
        return pending

    def prepare_data(self, headers: Sequence[BatchHeader]) -> PendingAppend | None:
        """What a leader's batches change, none of which has to do with a transaction.

        None leaves open what they change, where their producers need a closer look: it is for
        `prepare` to find out. Of many batches of one producer only the last few are remembered.
        """
        by_producer: dict[int, list[BatchHeader]] = {}
        for header in headers:
            producer_id = header.producer_id
            if producer_id >= 0:
                own = by_producer.get(producer_id)
                if own is None:
                    own = by_producer[producer_id] = []
                own.append(header)
        pending = PendingAppend(self.end_offset)
        pending.end_offset = headers[-1].next_offset
        for producer_id, own in by_producer.items():
            if producer_id == DELIVERY_PRODUCER_ID:
                pending.entries[producer_id] = ProducerEntry(producer_id).with_deliveries(own[-1])
                continue
            entry = self._entries.get(producer_id) or ProducerEntry(producer_id)
            epoch = entry.producer_epoch
            for header in own:
                if header.producer_epoch < epoch:
                    return None
                epoch = header.producer_epoch
            if entry.transaction_first_offset is not None:
                return None
            for header in own[-BATCHES_RETAINED_MAX:]:
                entry = entry.with_data(header)
            pending.entries[producer_id] = entry
        return pending

    def _after_marker(
        self,
        pending: PendingAppend,
        entry: ProducerEntry,
        header: BatchHeader,
        marker: EndTransactionMarker,
        origin: AppendOrigin,
    ) -> ProducerEntry:
        check_marker(entry, header, marker, origin, self.partition)
        first = entry.transaction_first_offset
        if first is not None:  # A transaction without records here leaves nothing to complete.
            is_aborted = marker.type == ControlType.ABORT
            pending.completed.append(
                CompletedTransaction(entry.producer_id, first, header.base_offset, is_aborted)
            )
        return entry.with_marker(header, marker.coordinator_epoch)

    def apply(self, pending: PendingAppend) -> None:
        """Put a prepared append in force. The transactions it ended still count as open."""
        check(pending.duplicate is None, "%s: a duplicate has nothing to apply", self.partition)
        check(
            pending.base_offset == self.end_offset,
            "%s: an append prepared at offset %d is applied at %d",
            self.partition,
            pending.base_offset,
            self.end_offset,
        )
        self._entries.update(pending.entries)
        for first_offset, producer_id in pending.started:
            self._transactions.start(first_offset, producer_id)
        if self.verifications:
            self.verifications.forget(pending.entries)
        self.end_offset = pending.end_offset

    def in_sequence(
        self, producer_id: int, epoch: int, base_sequence: int, offset_delta: int
    ) -> ProducerEntry | None:
        """The producer whose next batch this is, with no transaction open and no number to wrap.

        None leaves all else open: it is for `prepare` to say what is the matter.
        """
        entry = self._entries.get(producer_id)
        if (
            entry is None
            or entry.producer_epoch != epoch
            or entry.transaction_first_offset is not None
            or not entry.batches
            or entry.batches[-1].last_sequence + 1 != base_sequence
            or base_sequence + offset_delta > SEQUENCE_MAX
        ):
            return None
        return entry

    def follow(self, entry: ProducerEntry, header: BatchHeader) -> None:
        """The batch that `in_sequence` found to be next is written."""
        self._entries[entry.producer_id] = entry.with_data(header)

    def last_stable_offset(self, completed: CompletedTransaction) -> int:
        """What the last stable offset can be once `completed` no longer counts as open."""
        return self._transactions.last_stable_offset(completed)

    def complete_transaction(self, completed: CompletedTransaction) -> None:
        """From now on `completed` is not open, but still unstable until it is replicated."""
        self._transactions.complete(completed)

    # -- the log's offsets move ------------------------------------------------------------------

    def on_high_watermark(self, high_watermark: int) -> None:
        """All below `high_watermark` is replicated: ended transactions below it are stable."""
        self._transactions.forget_unreplicated_below(high_watermark)

    def on_log_start(self, log_start_offset: int) -> None:
        """Records before `log_start_offset` are gone; what is known of their producers stays."""
        self._transactions.forget_unreplicated_below(log_start_offset)
        self.end_offset = max(self.end_offset, log_start_offset)
        self.snapshot_offset = max(self.snapshot_offset, log_start_offset)

    def remove_expired(self, now_ms: int) -> int:
        """Forget producers that were idle for `producer.id.expiration.ms`; returns how many."""
        expired = [
            entry.producer_id for entry in self._entries.values() if self._is_expired(entry, now_ms)
        ]
        for producer_id in expired:
            del self._entries[producer_id]
        self.verifications.remove_older(now_ms - self.producer_id_expiration_ms)
        return len(expired)

    def _is_expired(self, entry: ProducerEntry, now_ms: int) -> bool:
        if entry.producer_id == DELIVERY_PRODUCER_ID:
            return False
        idle_ms = now_ms - entry.last_timestamp
        return entry.transaction_first_offset is None and idle_ms >= self.producer_id_expiration_ms

    # -- snapshots -------------------------------------------------------------------------------

    def take_snapshot(self, files: FileSystem, directory: str, *, durable: bool = True) -> bool:
        """Write the state down at `end_offset`, unless it was already; returns whether it did."""
        if self.end_offset <= self.snapshot_offset:
            return False
        entries = self._entries.values()
        write_snapshot(files, directory, self.end_offset, entries, durable=durable)
        self.snapshot_offset = self.end_offset
        return True

    def load(self, entries: Iterable[ProducerEntry], offset: int, now_ms: int) -> None:
        """Replace the state by that of a snapshot at `offset`."""
        kept = [entry for entry in entries if not self._is_expired(entry, now_ms)]
        self._entries = {entry.producer_id: entry for entry in kept}
        self._transactions.reset(
            (entry.transaction_first_offset, entry.producer_id)
            for entry in kept
            if entry.transaction_first_offset is not None
        )
        self.end_offset = offset
        self.snapshot_offset = offset
        self.loaded_offset = offset
        self.recalled = frozenset()

    def recall(self, producer_id: int, batches: tuple[BatchMetadata, ...]) -> None:
        """Give a producer back what the snapshot left out: batches in front of those it has."""
        entry = self._entries[producer_id]
        self._entries[producer_id] = entry._replace(batches=batches + entry.batches)
        self.recalled |= {producer_id}

    def truncate_and_reload(
        self,
        files: FileSystem,
        directory: str,
        *,
        log_start_offset: int,
        log_end_offset: int,
        now_ms: int,
    ) -> None:
        """Go back to the newest snapshot in range, if the state is not that of the log's end.

        Afterwards the log from `end_offset` on must be replayed. Truncation goes at least as far
        back as the high watermark, so every marker that is left has been replicated: the ones
        that are replayed are forgotten by the next `on_high_watermark`.
        """
        remove_snapshots_above(files, directory, log_end_offset)
        remove_snapshots_below(files, directory, log_start_offset)
        if log_end_offset == self.end_offset:
            self.on_log_start(log_start_offset)
            return
        loaded = load_latest_snapshot(files, directory)
        self.load(
            loaded.entries if loaded is not None else (),
            loaded.offset if loaded is not None else log_start_offset,
            now_ms,
        )

    def truncate_fully(self, files: FileSystem, directory: str, offset: int) -> None:
        """The log is empty and goes on at `offset`: nothing is remembered, no snapshot kept."""
        remove_snapshots_above(files, directory, -1)
        self.load((), offset, now_ms=0)
        self.snapshot_offset = 0
