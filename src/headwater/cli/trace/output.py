"""A message's story for people, as a table of events with the waits between them, and as JSON."""

from __future__ import annotations

from typing import Any, Final

from headwater.base.printable import printable, shortened
from headwater.cli.output.colour import Tone, heading
from headwater.cli.output.plain_table import Column, TableForm, table_lines
from headwater.delivery.redrive.letters.json_lines import shown_bytes
from headwater.delivery.trace.event import Event, What
from headwater.delivery.trace.investigation import Found
from headwater.delivery.trace.lengths import said, shown_moment
from headwater.delivery.trace.sentences import exactness, sentence
from headwater.delivery.trace.station import Station, parents_of
from headwater.delivery.trace.story import batch_details
from headwater.delivery.trace.timeline import ClockSkew
from headwater.delivery.trace.waits import Wait, waits_of

_FORM: Final = TableForm(separator="  ", missing="")
_KEY_SHOWN: Final = 100
_TONES: Final = {
    What.FAILED: Tone.BAD,
    What.NOT_HANDLED: Tone.BAD,
    What.SENT_ON: Tone.WARNING,
    What.DEAD_LETTER: Tone.BAD,
    What.TRANSACTION_ABORTED: Tone.WARNING,
    What.WENT_BACK: Tone.WARNING,
    What.LEADER_CHANGED: Tone.WARNING,
}
#: A wait of less is no news, unless somebody asked for it.
_WAIT_SHOWN_MS: Final = 10
_ALWAYS: Final = frozenset({"delay", "retry", "replication", "lag"})


def print_story(found: Found) -> None:
    print(heading("a trace without a message" if found.id is None else printable(str(found.id))))
    for line in _facts(found):
        print(f"  {line}")
    print()
    events = found.timeline.events
    if events:
        for line in _event_lines(found):
            print(line)
    else:
        print("Nothing is known of when anything happened to it.")
    remarks = [*(skew_sentence(each) for each in found.timeline.skews), *found.timeline.notes]
    if remarks:
        print()
    for remark in remarks:
        print(printable(remark))


def _facts(found: Found) -> list[str]:
    facts = []
    if found.stations:
        station = found.stations[0]
        record = station.record
        size = sum(len(each or b"") for each in (record.key, record.value))
        facts.append(f"key {_shown(record.key)}, {size:,} bytes")
        details = batch_details(station)
        if "producer_id" in details and station.waited_at is None:
            facts.append(
                f"producer {details['producer_id']}, epoch {details['producer_epoch']}, "
                f"sequence {details.get('sequence', 'none')}, leader epoch "
                f"{details['leader_epoch']}, in a batch of {details['batch_records']}"
            )
    elif found.waiting is not None:
        facts.append(f"key {_shown(found.waiting.key)}, {found.waiting.size_bytes:,} bytes")
    facts += [f"trace {each}" for each in found.trace_ids]
    return facts


def _event_lines(found: Found) -> list[str]:
    events = found.timeline.events
    waits: dict[int, list[Wait]] = {}
    for wait in waits_of(events, parents_of(found.stations)):
        if wait.name in _ALWAYS or wait.duration_ms >= _WAIT_SHOWN_MS:
            waits.setdefault(wait.to_event, []).append(wait)
    rows: list[dict[str, object]] = []
    tones: dict[object, Tone | None] = {}
    for number, event in enumerate(events):
        for wait in waits.get(number, ()):
            text = f"   ... {wait.text}"
            rows.append({"time": None, "exact": None, "clock": None, "event": text})
        text = sentence(event)
        tones[text] = _TONES.get(event.what)
        rows.append(
            {
                "time": shown_moment(event.time_ms),
                "exact": exactness(event),
                "clock": event.clock,
                "event": text,
            }
        )
    columns = (
        Column("TIME", "time"),
        Column("EXACT", "exact"),
        Column("CLOCK OF", "clock"),
        Column("EVENT", "event", tone=tones.get),
    )
    return list(table_lines(columns, rows, _FORM))


def skew_sentence(skew: ClockSkew) -> str:
    """Which clock was wrong nobody knows; the order of events does not depend on it."""
    return (
        f"The clock of {skew.clock} is ahead of that of {skew.other} by {said(skew.ahead_ms)} "
        "or more."
    )


def _shown(data: bytes | None) -> str:
    if data is None:
        return "(null)"
    shown = shown_bytes(data)
    text = shown if isinstance(shown, str) else f"(base64) {(shown or {}).get('base64', '')}"
    return printable(shortened(text, _KEY_SHOWN))


# -- for programs --------------------------------------------------------------------------------


def document_of(found: Found) -> dict[str, Any]:
    """A message's story with names that stay."""
    events = found.timeline.events
    waits = waits_of(events, parents_of(found.stations))
    return {
        "id": None if found.id is None else str(found.id),
        "trace_ids": list(found.trace_ids),
        "stations": [_station_document(each) for each in found.stations],
        "waiting_until_ms": None if found.waiting is None else found.waiting.due_ms,
        "events": [_event_document(each) for each in events],
        "waits": [
            {
                "wait": wait.name,
                "from_event": wait.from_event,
                "to_event": wait.to_event,
                "duration_ms": wait.duration_ms,
                "within_ms": wait.within_ms,
                "text": wait.text,
            }
            for wait in waits
        ],
        "clocks": [skew._asdict() for skew in found.timeline.skews],
        "notes": list(found.timeline.notes),
    }


def _station_document(station: Station) -> dict[str, Any]:
    record = station.record
    return {
        "id": str(station.place),
        "kind": station.kind.value.replace(" ", "_"),
        "waited_at": None if station.waited_at is None else str(station.waited_at),
        "origin": None if station.origin is None else str(station.origin),
        "group": station.group,
        "attempts": station.attempts,
        "redrives": station.redrives,
        "timestamp_ms": record.timestamp,
        "timestamp_type": None if station.header is None else station.header.timestamp_type.name,
        "key": shown_bytes(record.key),
        "size_bytes": sum(len(each or b"") for each in (record.key, record.value)),
        "transaction": station.transaction.value,
        "batch": batch_details(station),
    }


def _event_document(event: Event) -> dict[str, Any]:
    return {
        "event": event.what.value,
        "time_ms": event.time_ms,
        "within_ms": event.within_ms,
        "source": event.source.value,
        "clock": event.clock,
        "id": None if event.place is None else str(event.place),
        "group": event.group,
        "host": event.host,
        "client_id": event.client_id,
        "member": event.member,
        "attempt": event.attempt,
        "error": event.error,
        "text": sentence(event),
        "details": dict(event.details),
    }
