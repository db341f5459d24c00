"""Replays archived records into a topic: whole or a range of time, at a chosen rate, each once.

Records keep key, value, headers, timestamp and their order within a partition. They go to the
partition they came from if the target has as many, and by their key otherwise.

It runs in one process and writes Arrow batches with a transactional producer: that keeps the order,
which tasks of Spark beside each other would not, and is not what limits the speed. Each transaction
also commits how far the replay has come (`position`). A replay that was stopped or crashed
goes on from there if it is started again with the same name, and what it was about to write then is
aborted: readers with `isolation.level=read_committed` see each record once, others may see records
of the aborted transaction. Starting a name again while it still runs ends the older run.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from headwater.base.ids import TopicPartition
from headwater.client.admin import NewTopic, require_all
from headwater.client.admin.admin import Admin
from headwater.client.consumer.committed.offset_and_metadata import OffsetAndMetadata
from headwater.client.consumer.membership.membership import GroupIdentity
from headwater.client.producer.producer import Producer
from headwater.pipeline.lake.errors import LakeError
from headwater.pipeline.lake.lake_table import LakeTable
from headwater.pipeline.lake.reading.record_stream import records_in_order
from headwater.pipeline.lake.reading.table_read import TableReader
from headwater.pipeline.lake.replay.plan import Piece, oldest_first, pieces, wanted_files
from headwater.pipeline.lake.replay.position import (
    GROUP_PREFIX,
    ReplaySubject,
    positions_from_text,
    positions_to_text,
)
from headwater.pipeline.lake.table.snapshot import Snapshot

PIECE_ROWS: Final = 4096
TRANSACTION_ROWS: Final = 65_536
#: With a rate, a transaction has what may be sent in this time, so that the flow is even.
PACED_S: Final = 0.25
SENT: Final = ("key", "value", "timestamp", "headers")


class ReplayProgress(NamedTuple):
    #: Sent and committed in this run.
    row_count: int
    #: At most so many are to be sent in this run; fewer if times are chosen.
    row_count_max: int
    duration_s: float


@dataclass(slots=True)
class ReplayReport:
    #: Sent in this run; earlier runs of the same name had their share.
    row_count: int = 0
    transaction_count: int = 0
    duration_s: float = 0.0
    #: Where the replay stands, by archived partition.
    positions: dict[int, int] = field(default_factory=dict)


def replay(
    table: LakeTable | str | os.PathLike[str],
    *,
    bootstrap_servers: str,
    target: str,
    topic: str | None = None,
    name: str = "replay",
    from_ms: int | None = None,
    until_ms: int | None = None,
    rows_per_s: float | None = None,
    on_progress: Callable[[ReplayProgress], None] | None = None,
    client_settings: Mapping[str, object] | None = None,
) -> ReplayReport:
    """Replay a topic of an archive (`topic` may be left out if there is one) to the topic `target`.

    Times are those of records: from `from_ms` on, before `until_ms`. A target that does not exist
    is made, with as many partitions as were archived.
    """
    lake = table if isinstance(table, LakeTable) else LakeTable(table)
    snapshot = lake.snapshot()
    subject = ReplaySubject(_archived_topic(lake, snapshot, topic), from_ms, until_ms)
    settings = {**(client_settings or {}), "bootstrap.servers": bootstrap_servers}
    partition_count = 1 + max(
        one.partition for one in snapshot.coverage if one.topic == subject.topic
    )
    group = GROUP_PREFIX + name
    _make_target(settings, target, partition_count)
    with Producer({**settings, "transactional.id": group}) as producer:
        # Ends whatever an earlier run left open, before its position is asked for.
        producer.init_transactions()
        target_count = len(producer.partitions_for(target))
        sending = _Sending(producer, target, target_count, partition_count, subject, group)
        sending.report.positions = _committed(settings, subject, group, target)
        run = _pieces(lake, snapshot, subject, sending.report.positions, rows_per_s)
        return sending.send_all(run, rows_per_s, on_progress)


class _Run(NamedTuple):
    pieces: Iterator[Piece]
    row_count_max: int


class _Sending:
    """Writes pieces in transactions, not faster than the rate."""

    def __init__(
        self,
        producer: Producer,
        target: str,
        target_count: int,
        partition_count: int,
        subject: ReplaySubject,
        group: str,
    ) -> None:
        self._producer = producer
        self._target = target
        self._target_count = target_count
        self._keeps_partition = target_count >= partition_count
        self._subject = subject
        self._group = GroupIdentity(group)
        self.report = ReplayReport()

    def send_all(
        self,
        run: _Run,
        rows_per_s: float | None,
        on_progress: Callable[[ReplayProgress], None] | None,
    ) -> ReplayReport:
        report = self.report
        started_s = time.monotonic()
        limit = TRANSACTION_ROWS
        if rows_per_s is not None:
            limit = max(1, min(limit, int(rows_per_s * PACED_S)))
        for group in _grouped(run.pieces, limit):
            if rows_per_s is not None:
                early_s = started_s + report.row_count / rows_per_s - time.monotonic()
                time.sleep(max(0.0, early_s))
            self._send(group)
            report.duration_s = time.monotonic() - started_s
            if on_progress is not None:
                on_progress(ReplayProgress(report.row_count, run.row_count_max, report.duration_s))
        return report

    def _send(self, group: list[Piece]) -> None:
        positions = {**self.report.positions}
        with self._producer.transaction():
            for piece in group:
                rows = piece.rows.select([each for each in SENT if each in piece.rows.column_names])
                partition = piece.partition if self._keeps_partition else None
                self._producer.send_arrow(self._target, rows, partition=partition)
                positions[piece.partition] = piece.next_offset
            self._producer.send_offsets_to_transaction(self._offsets(positions), self._group)
        self.report.positions = positions
        self.report.row_count += sum(len(piece.rows) for piece in group)
        self.report.transaction_count += 1

    def _offsets(self, positions: Mapping[int, int]) -> dict[TopicPartition, OffsetAndMetadata]:
        texts = positions_to_text(self._subject, positions, self._target_count)
        return {
            TopicPartition(self._target, number): OffsetAndMetadata(0, text)
            for number, text in texts.items()
        }


def _pieces(
    lake: LakeTable,
    snapshot: Snapshot,
    subject: ReplaySubject,
    positions: Mapping[int, int],
    rows_per_s: float | None,
) -> _Run:
    names = [name for name in ("offset", *SENT) if name in snapshot.schema.names]
    reader = TableReader(lake.path, snapshot, names, lake.disk)
    row_count_max = PIECE_ROWS
    if rows_per_s is not None:
        row_count_max = max(1, min(row_count_max, int(rows_per_s * PACED_S)))
    files = wanted_files(snapshot.files.values(), *subject)
    streams = {
        partition: pieces(
            partition,
            records_in_order(reader, some, from_offset=positions.get(partition, 0)),
            from_ms=subject.from_ms,
            until_ms=subject.until_ms,
            row_count_max=row_count_max,
        )
        for partition, some in files.items()
    }
    return _Run(
        oldest_first(streams),
        sum(
            file.row_count
            for partition, some in files.items()
            for file in some
            if file.records is not None and file.records.last_offset >= positions.get(partition, 0)
        ),
    )


def _grouped(run: Iterator[Piece], row_count_max: int) -> Iterator[list[Piece]]:
    group: list[Piece] = []
    row_count = 0
    for piece in run:
        if group and row_count + len(piece.rows) > row_count_max:
            yield group
            group, row_count = [], 0
        group.append(piece)
        row_count += len(piece.rows)
    if group:
        yield group


def _archived_topic(lake: LakeTable, snapshot: Snapshot, topic: str | None) -> str:
    topics = sorted({one.topic for one in snapshot.coverage})
    if not topics:
        raise LakeError(f"{lake.path} holds no archive of topics.")
    if topic is None and len(topics) > 1:
        raise LakeError(f"{lake.path} holds {', '.join(topics)}: say which topic to replay.")
    if topic is not None and topic not in topics:
        raise LakeError(f"{lake.path} does not hold {topic!r}; it has {', '.join(topics)}.")
    return topic or topics[0]


def _make_target(settings: Mapping[str, object], target: str, partition_count: int) -> None:
    with Admin(settings) as admin:
        if target not in {found.name for found in admin.list_topics()}:
            admin.create_topics([NewTopic(target, partition_count)])


def _committed(
    settings: Mapping[str, object], subject: ReplaySubject, group: str, target: str
) -> dict[int, int]:
    with Admin(settings) as admin:
        offsets = require_all(admin.list_group_offsets([group], require_stable=True))[group]
    texts = [found.metadata for one, found in offsets.items() if one.topic == target]
    return positions_from_text(subject, texts, group)
