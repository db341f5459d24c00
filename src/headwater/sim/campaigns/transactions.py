"""The campaign of `log` with transactions, and with a disk that refuses a write at times.

What must hold besides: the aborted transactions that a reader is told are those of the model, no
more and no fewer, and the last stable offset never passes the first record of an open transaction.
Of a transaction that lies in front of the log's start a log may forget what it likes.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from typing import NamedTuple

from headwater.sim.campaigns.log import LogCampaign
from headwater.sim.disk.faulty_disk import Fault
from headwater.storage.errors import LogStorageError
from headwater.storage.producers.entry import AppendOrigin
from headwater.wire.records import (
    ControlType,
    Record,
    decode_batch,
    encode_batch,
    encode_end_transaction_marker,
    patch_batch,
)

#: Far from those of the base campaign, which count up as well.
_FIRST_PRODUCER_ID = 1_000_000
_WRITER_COUNT = 3


class Write(NamedTuple):
    """A producer's batch or marker, by its last record, which no other write shares."""

    producer_id: int
    first_offset: int
    record: Record
    #: None for data.
    ends_with: ControlType | None


class Aborted(NamedTuple):
    producer_id: int
    first_offset: int
    last_offset: int


class TransactionCampaign(LogCampaign):
    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.writes: list[Write] = []
        self.next_producer_id = _FIRST_PRODUCER_ID
        #: Next sequence by producer id.
        self.sequences: dict[int, int] = {}
        self.start_max = 0
        #: What is in the log, also in front of its start: transactions may have begun there.
        self.held: dict[int, Record] = {}
        self._renew_writers()

    def operations(self) -> list[tuple[Callable[[], None], int]]:
        return [
            *super().operations(),
            (self.write_in_transaction, 40),
            (self.end_transaction, 25),
            (self.append_on_failing_disk, 6),
        ]

    def _renew_writers(self) -> None:
        """As after InitProducerId: nothing is known of them."""
        self.sequences = {self.next_producer_id + number: 0 for number in range(_WRITER_COUNT)}
        self.next_producer_id += _WRITER_COUNT

    def _expect(self, records: list[Record]) -> None:
        super()._expect(records)
        self.held.update({record.offset: record for record in records})

    def _resume_producers(self) -> None:
        super()._resume_producers()
        self._renew_writers()

    # -- operations ------------------------------------------------------------------------------

    def write_in_transaction(self) -> None:
        producer_id = self.rng.choice(sorted(self.sequences))
        records = self._records(self.model.end, self.rng.randrange(1, 4))
        batch = encode_batch(
            [record._replace(offset=number) for number, record in enumerate(records)],
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=self.sequences[producer_id],
            transactional=True,
        )
        self._expect(records)
        self.writes.append(Write(producer_id, records[0].offset, records[-1], None))
        self.sequences[producer_id] += len(records)
        result = self.log.append_as_leader(
            batch, leader_epoch=self.leader_epoch, now_ms=self.now_ms
        )
        assert not result.is_duplicate

    def end_transaction(self) -> None:
        producer_id = self.rng.choice(sorted(self.sequences))
        kind = self.rng.choice((ControlType.COMMIT, ControlType.ABORT, ControlType.ABORT))
        self.value_number += 1
        marker = bytearray(
            encode_end_transaction_marker(
                kind,
                producer_id=producer_id,
                producer_epoch=0,
                coordinator_epoch=self.value_number,  # It makes each marker one of a kind.
                timestamp_ms=self.now_ms,
            )
        )
        patch_batch(marker, 0, base_offset=self.model.end)
        (record,) = decode_batch(marker)
        patch_batch(marker, 0, base_offset=0)
        self._expect([record])
        self.writes.append(Write(producer_id, record.offset, record, kind))
        self.log.append_as_leader(
            marker,
            leader_epoch=self.leader_epoch,
            now_ms=self.now_ms,
            origin=AppendOrigin.COORDINATOR,
        )

    def append_on_failing_disk(self) -> None:
        """One write or creation fails. Unless it leaves the log unusable, it leaves no trace."""
        model = self.model
        before = model.end, dict(model.records), set(model.batch_ends)
        sequences, writes, held = dict(self.sequences), list(self.writes), dict(self.held)
        fault = Fault(
            self.rng.choice((("write",), ("create",))),
            error=errno.ENOSPC,
            skip_count=self.rng.randrange(4),
            hit_count_max=1,
            torn=self.rng.random() < 0.5,
        )
        self.disk.faults.append(fault)
        try:
            self.rng.choice((self.append, self.write_in_transaction, self.end_transaction))()
        except LogStorageError:
            if self.log.failure is None:
                model.end, model.records, model.batch_ends = before
                self.sequences, self.writes, self.held = sequences, writes, held
                self.disk.faults.remove(fault)
                # Until a sync, what was cut off again may come back with a power loss.
                self.log.flush()
        finally:
            if fault in self.disk.faults:
                self.disk.faults.remove(fault)
        if self.log.failure is not None:
            self.crash()

    def delete_records(self) -> None:
        super().delete_records()
        self.start_max = max(self.start_max, self.model.start)

    def retain(self) -> None:
        super().retain()
        self.start_max = max(self.start_max, self.model.start)

    def truncate(self) -> None:
        super().truncate()
        self.held = {o: record for o, record in self.held.items() if o < self.model.end}

    def truncate_all(self) -> None:
        super().truncate_all()
        self.start_max = self.model.start
        self.held = {}

    # -- comparing -------------------------------------------------------------------------------

    def compare(self) -> None:
        super().compare()
        self.compare_transactions()

    def crash(self) -> None:
        super().crash()
        start = self.model.start
        self.start_max = max(self.start_max, start)
        hidden = {o: record for o, record in self.held.items() if o < start}
        self.held = hidden | self.model.records
        self.compare_transactions()

    def _transactions(self) -> tuple[list[Aborted], dict[int, list[Write]]]:
        """The aborted ones, and the writes of each producer's open one, of what the log holds."""
        aborted: list[Aborted] = []
        open_writes: dict[int, list[Write]] = {}
        for write in sorted(self.writes, key=lambda each: each.record.offset):
            if self.held.get(write.record.offset) != write.record:
                continue
            if write.ends_with is None:
                open_writes.setdefault(write.producer_id, []).append(write)
                continue
            ended = open_writes.pop(write.producer_id, None)
            if ended is not None and write.ends_with is ControlType.ABORT:
                first_offset = ended[0].first_offset
                aborted.append(Aborted(write.producer_id, first_offset, write.record.offset))
        return aborted, open_writes

    def compare_transactions(self) -> None:
        log, start, end = self.log, self.model.start, self.model.end
        log.raise_high_watermark(end)
        aborted, open_writes = self._transactions()
        visible = [
            write.first_offset
            for writes in open_writes.values()
            for write in writes
            if write.record.offset >= max(start, self.start_max)
        ]
        stable = log.last_stable_offset
        assert stable <= max(start, min(visible, default=end)), (stable, open_writes)
        firsts = [writes[0].first_offset for writes in open_writes.values()]
        assert stable >= max(start, min(firsts, default=end)), (stable, open_writes)
        known = {(each.producer_id, each.last_offset) for each in aborted}
        for _ in range(4):
            first, upper = sorted(self.rng.randrange(start, end + 1) for _ in range(2))
            found = [(a.producer_id, a.last_offset) for a in log.aborted_transactions(first, upper)]
            wanted = {
                (each.producer_id, each.last_offset)
                for each in aborted
                if self.start_max <= each.first_offset < upper and each.last_offset >= first
            }
            assert wanted <= set(found) <= known, (first, upper, found, wanted)
            assert len(set(found)) == len(found), found
