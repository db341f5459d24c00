"""An archive against the topics it was made of: what can be read there must be here, the same.

Topics forget: what retention or compaction removed since is no fault of the archive. So the
comparison begins with the oldest record that the topic still has, and ends where the archive ends.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa

from headwater.base.counted import counted
from headwater.base.errors import KafkaError
from headwater.base.ids import TopicPartition
from headwater.client.consumer.consumer import Consumer
from headwater.pipeline.lake.lake_table import LakeTable
from headwater.pipeline.lake.reading.record_stream import records_in_order
from headwater.pipeline.lake.reading.table_read import TableReader
from headwater.pipeline.lake.table.snapshot import Snapshot
from headwater.pipeline.lake.verify.finding import Finding, problem

POLL_ROWS = 16_384
POLL_TIMEOUT_S = 1.0
#: A topic that gives nothing for so long, though it should, is reported and left.
SILENT_POLLS_MAX = 30
COMPARED = ("key", "value")


def verify_cluster(
    table: LakeTable,
    snapshot: Snapshot,
    bootstrap_servers: str,
    settings: Mapping[str, object],
    findings: list[Finding],
) -> None:
    """Read every archived partition once, and report what the archive lacks or has otherwise."""
    config = {
        "isolation.level": "read_committed",
        **settings,
        "bootstrap.servers": bootstrap_servers,
        "enable.auto.commit": False,
        "auto.offset.reset": "earliest",
    }
    with Consumer(config) as consumer:
        for one in sorted(snapshot.coverage):
            try:
                _verify_partition(table, snapshot, consumer, one, findings)
            except KafkaError as error:
                findings.append(problem(f"{one} cannot be compared with the cluster: {error}"))


def _verify_partition(
    table: LakeTable,
    snapshot: Snapshot,
    consumer: Consumer,
    one: TopicPartition,
    findings: list[Finding],
) -> None:
    ranges = snapshot.coverage[one]
    start = max(ranges[0].start, consumer.beginning_offsets([one])[one])
    end = min(ranges[-1].end, consumer.end_offsets([one])[one])
    if end < ranges[-1].end:
        findings.append(
            problem(
                f"{one} is archived up to offset {ranges[-1].end}, but the topic ends at {end}: it "
                "is another topic of that name, or has lost records."
            )
        )
    names = [name for name in COMPARED if name in snapshot.schema.names]
    reader = TableReader(table.path, snapshot, ["offset", *names], table.disk)
    files = [
        file
        for file in snapshot.files.values()
        if file.records is not None and file.records.topic_partition == one
    ]
    archived = _Cursor(records_in_order(reader, files, from_offset=start), reader.schema)
    missing: list[int] = []
    different: list[int] = []
    for records in _topic_records(consumer, one, start, end, findings):
        here = archived.until(int(records.column("offset")[-1].as_py()))
        offsets, there = here.column("offset").to_numpy(), records.column("offset").to_numpy()
        is_here = np.isin(there, offsets)
        missing += there[~is_here].tolist()
        both = records.filter(pa.array(is_here))
        same = here.filter(pa.array(np.isin(offsets, there)))
        for name in names:
            if not both.column(name).combine_chunks().equals(same.column(name).combine_chunks()):
                different += _differing(both, same, name)
    _report(one, "that the archive lacks", missing, findings)
    _report(one, "that the archive has with another key or value", different, findings)


def _topic_records(
    consumer: Consumer, one: TopicPartition, start: int, end: int, findings: list[Finding]
) -> Iterator[pa.Table]:
    consumer.assign([one])
    consumer.seek(one, start)
    silent = 0
    # The position passes over what has an offset but no record, such as transaction markers.
    while start < end and consumer.position(one) < end:
        batch = consumer.poll_arrow(timeout_s=POLL_TIMEOUT_S, max_records=POLL_ROWS)
        silent = 0 if len(batch) else silent + 1
        if silent > SILENT_POLLS_MAX:
            findings.append(
                problem(f"{one} could be read only up to offset {consumer.position(one)}.")
            )
            return
        rows = pa.Table.from_batches([batch])
        rows = rows.filter(pa.array(rows.column("offset").to_numpy() < end))
        if len(rows):
            yield rows


class _Cursor:
    """Archived records, handed out up to an offset at a time."""

    def __init__(self, batches: Iterator[pa.Table], schema: pa.Schema) -> None:
        self._batches = batches
        self._rows = schema.empty_table()
        self._is_done = False

    def until(self, offset: int) -> pa.Table:
        """Those up to and with this offset that were not handed out yet."""
        while not self._is_done and (
            len(self._rows) == 0 or self._rows.column("offset")[-1].as_py() < offset
        ):
            more = next(self._batches, None)
            if more is None:
                self._is_done = True
            else:
                self._rows = pa.concat_tables([self._rows, more])
        offsets = self._rows.column("offset").to_numpy()
        count = int(np.searchsorted(offsets, offset, side="right"))
        taken, self._rows = self._rows.slice(0, count), self._rows.slice(count)
        return taken


def _differing(there: pa.Table, here: pa.Table, name: str) -> list[int]:
    pairs = zip(
        there.column("offset").to_pylist(),
        there.column(name).to_pylist(),
        here.column(name).to_pylist(),
        strict=True,
    )
    return [offset for offset, one, other in pairs if one != other]


def _report(one: TopicPartition, what: str, offsets: list[int], findings: list[Finding]) -> None:
    if offsets:
        findings.append(
            problem(
                f"{one} has {counted(len(set(offsets)), 'record')} {what}, the first at offset "
                f"{min(offsets)}."
            )
        )
