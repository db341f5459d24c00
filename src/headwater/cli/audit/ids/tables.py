"""What was found out about ids, for people and for programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from headwater.base.counted import counted
from headwater.base.durations import show_duration
from headwater.cli.audit.ids.reading import IdReport, PlaceIds, count_closed, count_open
from headwater.cli.output.json_document import print_document
from headwater.delivery.audit.id_checker import IdRange

#: So many stretches of ids are printed; a document has them all.
_PRINTED_MAX: Final = 50


def print_report(report: IdReport, *, as_json: bool) -> None:
    if as_json:
        print_document(_document(report))
        return
    asked = report.asked
    when = "all records" if asked.last_ms is None else f"the last {show_duration(asked.last_ms)}"
    print(f"{report.place.name}, {when}:")
    _print_place(report.place)
    _print_ranges("missing", report.missing)
    if report.is_compacted and report.missing:
        print("  The topic is compacted: what is missing may have been replaced by newer records.")
    if report.aborted:
        _print_ranges("sent in transactions that were aborted", report.aborted)
    _print_ranges("came more than once", report.place.doubled)
    other = report.other
    if other is not None:
        print(f"{other.name}:")
        _print_place(other)
        _print_ranges(f"in {asked.topic} and not here", report.missing_there)
        _print_ranges(f"here and not in {asked.topic}", report.only_there)
        _print_ranges("came more than once", other.doubled)
    for alarm in report.alarms:
        print(alarm)


def _print_place(place: PlaceIds) -> None:
    checker = place.checker
    print(
        f"  {counted(checker.id_count, 'id')} of {counted(checker.stream_count, 'stream')}, "
        f"{counted(place.without_id_count, 'record')} without an id"
    )


def _print_ranges(title: str, ranges: Sequence[IdRange]) -> None:
    closed, still = count_closed(ranges), count_open(ranges)
    also = f", and {still} that may still come" if still else ""
    print(f"  {title}: {closed}{also}")
    for each in ranges[:_PRINTED_MAX]:
        print(f"    {each}{' (may still come)' if each.is_open else ''}")
    if len(ranges) > _PRINTED_MAX:
        print(f"    and {len(ranges) - _PRINTED_MAX} more stretches: --json has them all")


def _document(report: IdReport) -> dict[str, Any]:
    asked, other = report.asked, report.other
    document: dict[str, Any] = {
        "topic": asked.topic,
        "last_ms": asked.last_ms,
        "grace_ms": asked.grace_ms,
        **_place_fields(report.place),
        "missing_count": count_closed(report.missing),
        "missing": _ranges(report.missing),
        "is_compacted": report.is_compacted,
        "aborted": _ranges(report.aborted),
    }
    if other is not None:
        document["against"] = {
            "topic": asked.against,
            "lake": asked.lake,
            **_place_fields(other),
            "missing_count": count_closed(report.missing_there),
            "missing": _ranges(report.missing_there),
            "only_here": _ranges(report.only_there),
        }
    document["alarms"] = report.alarms
    return document


def _place_fields(place: PlaceIds) -> dict[str, Any]:
    checker = place.checker
    return {
        "id_count": checker.id_count,
        "stream_count": checker.stream_count,
        "without_id_count": place.without_id_count,
        "unchecked_count": checker.unchecked_count,
        "doubled_count": sum(each.id_count for each in place.doubled),
        "doubled": _ranges(place.doubled),
    }


def _ranges(ranges: Sequence[IdRange]) -> list[dict[str, Any]]:
    return [
        {
            "process": f"{each.stream.process:016x}",
            "partition": each.stream.partition,
            "first": each.first,
            "last": each.last,
            "is_open": each.is_open,
        }
        for each in ranges
    ]
