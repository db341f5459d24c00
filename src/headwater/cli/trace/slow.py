"""What `headwater trace slow` does on a cluster."""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Iterable
from typing import Final

from headwater.base.message_id import MessageId
from headwater.cli.options.nearest_name import describe_topics
from headwater.cli.output.json_document import print_document
from headwater.cli.output.plain_table import WIDE, Column, Row, print_rows
from headwater.client.connection.cluster_connection import ClusterConnection
from headwater.delivery.trace.audit_reader import read_audit
from headwater.delivery.trace.batch_reader import BatchReader
from headwater.delivery.trace.event import Source
from headwater.delivery.trace.lengths import said, shown_moment
from headwater.delivery.trace.place_reader import PlaceReader
from headwater.delivery.trace.slowest import (
    HANDLING,
    SlowMessage,
    slow_by_audit,
    slow_by_steps,
    slowest,
)
from headwater.delivery.trace.written_reader import WrittenReader

#: For each message that is listed so many are looked at, at most.
_LOOKS: Final = 5
_COLUMNS: Final = (
    Column("ID", "id"),
    Column("WAITED", "waited"),
    Column("EXACT", "exact"),
    Column("STEP", "step"),
    Column("GROUP", "group"),
    Column("CAME", "came"),
    Column("FROM", "source"),
)


async def print_slowest(
    connection: ClusterConnection,
    topic: str,
    step: str,
    last_ms: int,
    limit: int,
    *,
    as_json: bool,
) -> None:
    """Raises `UnknownTopicError` for a topic that is not there."""
    await describe_topics(connection, [topic])
    from_ms = time.time_ns() // 1_000_000 - last_ms
    reader = BatchReader(connection)
    written = await WrittenReader(connection, reader).of_topic(topic, from_ms)
    audit = await read_audit(connection, [topic], from_ms, lambda _: False)
    told = [*slow_by_steps(written.steps, topic, step), *slow_by_audit(audit.rows, topic, step)]
    found = await _that_are_there(
        PlaceReader(reader), slowest(each for each in told if each.time_ms >= from_ms), limit
    )
    if as_json:
        print_document({"topic": topic, "step": step, "messages": [_fields(x) for x in found]})
    else:
        print_rows(_COLUMNS, [_row(each) for each in found], form=WIDE)
    for sentence in _remarks(step, written.is_there, audit.is_there, found):
        print(f"headwater: {sentence}", file=sys.stderr)
    if not (written.is_complete and audit.is_complete):
        print("headwater: Not all was read: give a shorter --last.", file=sys.stderr)


async def _that_are_there(
    places: PlaceReader, slow: Iterable[SlowMessage], limit: int
) -> list[SlowMessage]:
    """The first ones whose records can be read: of the audit only the ends of logs are known.

    What lies at the end may be the marker of a transaction, with its last record in front of it, or
    a message that was delayed, whose copy counts.
    """
    found: dict[tuple[MessageId, str | None], SlowMessage] = {}
    for each in itertools.islice(slow, limit * _LOOKS):
        if len(found) == limit:
            break
        place: MessageId | None = each.id
        if each.source is Source.AUDIT:
            place = await places.record_at_end(each.id)
        if place is not None:
            found.setdefault((place, each.group), each._replace(id=place))
    return list(found.values())


def _remarks(step: str, has_steps: bool, has_audit: bool, found: list[SlowMessage]) -> list[str]:
    if not has_steps and not has_audit:
        return [
            "There is no topic __audit and no __trace: nobody tells how slow messages were. "
            "Headwater makes the first a minute after its first record."
        ]
    if not found and step == HANDLING:
        return ["Nobody told how long handling took: see trace.enable of consumers and workers."]
    if not found:
        return ["Nothing is told of that step: what brokers see is published once a minute."]
    return []


def _row(each: SlowMessage) -> Row:
    return {
        "id": str(each.id),
        "waited": said(each.duration_ms),
        "exact": f"within {said(each.within_ms)}" if each.within_ms else "exact",
        "step": each.step,
        "group": each.group,
        "came": shown_moment(each.time_ms),
        "source": "audit" if each.source is Source.AUDIT else "written",
    }


def _fields(each: SlowMessage) -> dict[str, object]:
    return {
        "id": str(each.id),
        "step": each.step,
        "duration_ms": each.duration_ms,
        "within_ms": each.within_ms,
        "time_ms": each.time_ms,
        "group": each.group,
        "source": each.source.value,
    }
