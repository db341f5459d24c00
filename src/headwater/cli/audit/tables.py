"""A topic's book for people, as tables, and for programs, as a document."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any, Final

from headwater.audit.group_sum import GroupSum
from headwater.audit.topic_book import BucketSum, TopicBook
from headwater.base.counted import counted
from headwater.base.durations import show_duration
from headwater.cli.output.colour import Tone
from headwater.cli.output.json_document import print_document
from headwater.cli.output.plain_table import Column, print_table
from headwater.delivery.audit.stage_rows import StageSum


def _is_bad(value: object) -> Tone | None:
    return Tone.BAD if value else None


_GROUPS: Final = (
    Column("GROUP", "group"),
    Column("OUT", "out_count", is_number=True),
    Column("BEHIND", "behind_count", is_number=True),
    Column("MISSING", "missing_count", is_number=True, tone=_is_bad),
    Column("DOUBLED", "doubled_count", is_number=True, tone=_is_bad),
    Column("WENT BACK", "went_back_count", is_number=True),
    Column("NO MEMBER", "without_member_count", is_number=True),
    Column("LATENCY MAX", "latency"),
)
_STAGES: Final = (
    Column("STAGE", "stage"),
    Column("TIER", "tier"),
    Column("SEEN", "count", is_number=True),
    Column("GIVEN UP", "given_up_count", is_number=True, tone=_is_bad),
    Column("AGAINST STORED", "of_stored", is_number=True),
    Column("NOT COUNTED", "uncounted_count", is_number=True, tone=_is_bad),
    Column("BYTES", "bytes", is_number=True),
    Column("LATENCY MAX", "latency"),
)
_BUCKETS: Final = (
    Column("BUCKET", "bucket"),
    Column("STATE", "state"),
    Column("IN", "count", is_number=True),
    Column("ABORTED", "aborted_count", is_number=True),
    Column("STORED", "stored_count", is_number=True),
    Column("LOST", "lost_count", is_number=True, tone=_is_bad),
    Column("BYTES", "bytes", is_number=True),
    Column("BATCHES", "batches", is_number=True),
    Column("LATE", "late_count", is_number=True),
    Column("LATENESS MAX", "lateness"),
)


def print_book(
    book: TopicBook,
    last_ms: int,
    stages: Sequence[StageSum] = (),
    *,
    by_bucket: bool,
    as_json: bool,
) -> None:
    if as_json:
        print_document({**_document(book, last_ms), "stages": [asdict(each) for each in stages]})
        return
    late = sum(bucket.late_count for bucket in book.buckets)
    print(f"{book.topic}, records of the last {show_duration(last_ms)}:")
    print(
        f"  in {book.count}, aborted {book.aborted_count}, stored {book.stored_count}, "
        f"lost {book.lost_count}, late {late}, without a time {book.count_without_time}"
    )
    print(
        f"  refused: {counted(book.duplicates_refused, 'duplicate')}, "
        f"{counted(book.gaps_refused, 'batch', 'batches')} with a gap in front"
    )
    if book.has_append_time:
        print("  Its records have the time of their append: it is not known how late they were.")
    open_count = sum(bucket.state == "open" for bucket in book.buckets)
    if open_count:
        print(f"  {counted(open_count, 'bucket')} of time still open: more may come.")
    print()
    if book.groups:
        print_table("Groups", _GROUPS, [_group_fields(book, each) for each in book.groups])
    if stages:
        print_table("Stages", _STAGES, [_stage_fields(book, each) for each in stages])
    if by_bucket:
        print_table("Buckets", _BUCKETS, [_bucket_fields(each) for each in book.buckets])
    for alarm in book.alarms:
        print(alarm)


def _group_fields(book: TopicBook, group: GroupSum) -> dict[str, Any]:
    return {
        "group": group.group,
        "out_count": group.out_count,
        "behind_count": max(book.stored_count - group.out_count - group.missing_count, 0),
        "missing_count": group.missing_count,
        "doubled_count": group.doubled_count,
        "went_back_count": group.went_back_count,
        "without_member_count": group.without_member_count,
        "latency": _duration(group.latency_ms_max),
    }


def _stage_fields(book: TopicBook, stage: StageSum) -> dict[str, Any]:
    return {
        "stage": stage.stage,
        "tier": stage.tier,
        "count": stage.count,
        "given_up_count": stage.given_up_count,
        "of_stored": stage.count - book.stored_count,
        "uncounted_count": stage.uncounted_count,
        "bytes": stage.bytes,
        "latency": show_duration(stage.latency_ms_max),
    }


def _bucket_fields(bucket: BucketSum) -> dict[str, Any]:
    start = datetime.fromtimestamp(bucket.start_ms / 1000, UTC)
    return {
        "bucket": f"{start:%Y-%m-%dT%H:%M:%SZ}",
        "state": bucket.state,
        "count": bucket.count,
        "aborted_count": bucket.aborted_count,
        "stored_count": bucket.stored_count,
        "lost_count": bucket.lost_count,
        "bytes": bucket.bytes,
        "batches": bucket.batches,
        "late_count": bucket.late_count,
        "lateness": _duration(bucket.lateness_ms_max),
    }


def _document(book: TopicBook, last_ms: int) -> dict[str, Any]:
    groups = []
    for group in book.groups:
        fields = _group_fields(book, group)
        del fields["latency"]
        groups.append({**fields, "latency_ms_max": group.latency_ms_max})
    buckets = []
    for bucket in book.buckets:
        fields = _bucket_fields(bucket)
        del fields["bucket"], fields["lateness"]
        buckets.append(
            {
                "time_bucket_start": bucket.start_ms,
                "time_bucket_end": bucket.end_ms,
                **fields,
                "lateness_ms_max": bucket.lateness_ms_max,
                "out": {
                    group.group: group.out_by_bucket.get(bucket.start_ms, 0)
                    for group in book.groups
                },
            }
        )
    return {
        "topic": book.topic,
        "last_ms": last_ms,
        "timestamp_type": "LogAppendTime" if book.has_append_time else "CreateTime",
        "count": book.count,
        "stored_count": book.stored_count,
        "aborted_count": book.aborted_count,
        "lost_count": book.lost_count,
        "count_without_time": book.count_without_time,
        "duplicates_refused": book.duplicates_refused,
        "gaps_refused": book.gaps_refused,
        "uncounted_offsets": book.uncounted_offsets,
        "groups": groups,
        "buckets": buckets,
        "alarms": book.alarms,
    }


def _duration(duration_ms: int | None) -> str | None:
    return None if duration_ms is None else show_duration(duration_ms)
