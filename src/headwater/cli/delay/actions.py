"""What `headwater delay` does on a cluster."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from headwater.base.errors import KafkaError
from headwater.base.message_id import MessageId
from headwater.base.printable import printable
from headwater.cli.output.plain_table import WIDE, Column, Row, print_rows
from headwater.client.admin import DelayedMessage, DelayedOperations, Outcomes
from headwater.client.connection.cluster_connection import ClusterConnection
from headwater.client.message_id import SenderId

_LONG_MAX: Final = 2**63 - 1
_LISTED: Final = (
    Column("ID", "id"),
    Column("DUE", "due"),
    Column("SENT", "sent"),
    Column("SENDER ID", "sender_id"),
    Column("KEY", "key"),
    Column("BYTES", "size_bytes", is_number=True),
)
_SHOWN: Final = (*_LISTED[:3], Column("EXPIRES", "expires"), *_LISTED[3:])
#: For programs, which want numbers.
_IN_JSON: Final = tuple(
    Column("", key)
    for key in (
        "id", "topic", "partition", "offset", "due_ms", "sent_ms", "expires_ms", "sender_id",
        "key", "size_bytes",
    )
)  # fmt: skip
_CHANGED: Final = (Column("ID", "id"), Column("DONE", "done"))
_STATS: Final = (
    Column("TOPIC", "topic"),
    Column("PARTITION", "partition", is_number=True),
    Column("WAITING", "waiting", is_number=True),
    Column("BYTES", "waiting_bytes", is_number=True),
    Column("IN A MINUTE", "due_within_minute", is_number=True),
    Column("NEXT DUE", "next_due"),
    Column("DELIVERED", "delivered", is_number=True),
    Column("CANCELLED", "cancelled", is_number=True),
    Column("EXPIRED", "expired", is_number=True),
    Column("DELETED", "deleted", is_number=True),
    Column("UNKNOWN", "unknown", is_number=True),
)
_STATS_IN_JSON: Final = tuple(
    Column("", key)
    for key in (
        "topic", "partition", "waiting", "waiting_bytes", "due_within_minute", "next_due_ms",
        "delivered", "cancelled", "expired", "deleted", "unknown", "rolled_bytes", "index_bytes",
    )
)  # fmt: skip


class Search(NamedTuple):
    """Which messages to list."""

    topic: str
    partitions: Sequence[int] | None
    from_ms: int | None
    to_ms: int | None
    limit: int


Names = Sequence[MessageId | SenderId]
Changed = Outcomes[MessageId | SenderId, list[MessageId]]


async def list_messages(connection: ClusterConnection, search: Search, *, as_json: bool) -> None:
    listing = await DelayedOperations(connection).list_delayed(
        search.topic,
        partitions=search.partitions,
        due_from=search.from_ms or 0,
        due_to=_LONG_MAX if search.to_ms is None else search.to_ms,
        limit=search.limit,
    )
    _print_messages(listing.messages, _LISTED, as_json=as_json)
    if listing.has_more:
        print("headwater: There are more: see --limit, --from and --to.", file=sys.stderr)


async def show(connection: ClusterConnection, names: Names, *, as_json: bool) -> bool:
    """Returns whether something was not there."""
    outcomes = await DelayedOperations(connection).describe_delayed(names)
    found = [
        message
        for outcome in outcomes.values()
        if not isinstance(outcome, KafkaError)
        for message in outcome
    ]
    if found:
        _print_messages(found, _SHOWN, as_json=as_json)
    return _tell_failures(outcomes.values())


async def cancel(connection: ClusterConnection, names: Names, *, as_json: bool) -> bool:
    done = await DelayedOperations(connection).cancel_delayed(names, raise_errors=False)
    return _print_changed(done, "Cancelled", as_json=as_json)


async def reschedule(
    connection: ClusterConnection,
    names: Names,
    delay_ms: int | None,
    deliver_at_ms: int | None,
    *,
    as_json: bool,
) -> bool:
    done = await DelayedOperations(connection).reschedule_delayed(
        names, delay=delay_ms, deliver_at=deliver_at_ms, raise_errors=False
    )
    return _print_changed(done, "Rescheduled", as_json=as_json)


async def deliver_now(connection: ClusterConnection, names: Names, *, as_json: bool) -> bool:
    done = await DelayedOperations(connection).deliver_delayed_now(names, raise_errors=False)
    return _print_changed(done, "Delivers now", as_json=as_json)


async def stats(connection: ClusterConnection, topic: str | None, *, as_json: bool) -> bool:
    outcomes = await DelayedOperations(connection).delayed_stats(None if topic is None else [topic])
    rows: list[Row] = [
        key._asdict() | counts._asdict() | {"next_due": _moment(counts.next_due_ms)}
        for key, counts in sorted(outcomes.items())
        if not isinstance(counts, KafkaError)
    ]
    print_rows(_STATS_IN_JSON if as_json else _STATS, rows, as_json=as_json, form=WIDE)
    return _tell_failures(outcomes.values())


def _print_messages(
    messages: Sequence[DelayedMessage], columns: Sequence[Column], *, as_json: bool
) -> None:
    rows: list[Row] = [
        message._asdict()
        | message.id._asdict()
        | {
            "id": str(message.id),
            "due": _moment(message.due_ms),
            "sent": _moment(message.sent_ms),
            "expires": _moment(message.expires_ms),
            "sender_id": _text(message.sender_id),
            "key": _text(message.key),
        }
        for message in messages
    ]
    print_rows(_IN_JSON if as_json else columns, rows, as_json=as_json, form=WIDE)


def _print_changed(outcomes: Changed, done: str, *, as_json: bool) -> bool:
    """Returns whether something failed."""
    ids = [
        str(message_id)
        for outcome in outcomes.values()
        if not isinstance(outcome, KafkaError)
        for message_id in outcome
    ]
    if as_json:
        print_rows(_CHANGED, [{"id": each, "done": done.lower()} for each in ids], as_json=True)
    else:
        for each in ids:
            print(f"{done} {each}.")
    return _tell_failures(outcomes.values())


def _tell_failures(outcomes: Iterable[object]) -> bool:
    failures = [outcome for outcome in outcomes if isinstance(outcome, KafkaError)]
    for sentence in dict.fromkeys(map(str, failures)):
        print(f"headwater: {printable(sentence)}", file=sys.stderr)
    return bool(failures)


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode(errors="backslashreplace")


def _moment(time_ms: int | None) -> str | None:
    if time_ms is None:
        return None
    try:
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=time_ms)
    except OverflowError:
        # After the year 9999.
        return str(time_ms)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
