"""The rows that stand in the `__audit` of a broker, read from its logs."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

from headwater.audit.rows import AUDIT_TOPIC, Row, decode_row
from headwater.broker.context import BrokerContext
from headwater.replication.partition.partitions import Partitions
from headwater.wire.records import decode_batch, iter_batch_headers


def led_rows(partitions: Partitions) -> list[Row]:
    """All rows of the partitions of `__audit` that a broker leads, as far as they are safe."""
    rows: list[Row] = []
    for partition in partitions.of_topic(AUDIT_TOPIC).values():
        log = partition.log
        if not partition.is_leader or log.high_watermark == log.log_start_offset:
            continue
        offset = log.log_start_offset
        while offset < log.high_watermark:
            region = log.read(offset, 1 << 20, min_one_batch=True).region
            assert region is not None
            data = memoryview(region.read())
            for position, header in iter_batch_headers(data):
                for record in decode_batch(data[position : position + header.size_bytes]):
                    assert record.value is not None
                    row = decode_row(bytes(record.value))
                    assert row is not None
                    rows.append(row)
                offset = header.next_offset
    return rows


def all_rows(brokers: Iterable[BrokerContext]) -> list[Row]:
    """The same of a whole cluster."""
    return [row for broker in brokers for row in led_rows(broker.partitions)]


def check_stretches(rows: Iterable[Row]) -> None:
    """Stretches of a source follow each other: nothing is told twice, or left out."""
    by_source: dict[str, set[tuple[int, int]]] = {}
    for row in rows:
        stretch = (row["from_offset"], row["to_offset"])
        by_source.setdefault(row["source"], set()).add(stretch)
    for source, stretches in by_source.items():
        ordered = sorted(stretches)
        for (_, end), (start, _) in itertools.pairwise(ordered):
            assert end == start, f"{source}: a stretch ends at {end}, the next begins at {start}"
