"""What a canary tells: a table now and then or JSON lines, a page of metrics, and a last word."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Final

from headwater.base.counted import counted
from headwater.broker.metrics.exposition import Sample, counter, gauge, labels
from headwater.cli.audit.canary.ledger import BrokerFigures
from headwater.cli.output.colour import Tone
from headwater.cli.output.plain_table import Column, print_table


def _is_bad(value: object) -> Tone | None:
    return Tone.BAD if value else None


_COLUMNS: Final = (
    Column("BROKER", "broker_id", is_number=True),
    Column("SENT", "sent", is_number=True),
    Column("RECEIVED", "received", is_number=True),
    Column("LOST", "lost", is_number=True, tone=_is_bad),
    Column("DOUBLED", "doubled", is_number=True, tone=_is_bad),
    Column("FAILED", "failed", is_number=True, tone=_is_bad),
    Column("UNDER WAY", "outstanding", is_number=True),
    Column("LATE", "late", is_number=True),
    Column("P50 MS", "p50_ms", is_number=True),
    Column("P99 MS", "p99_ms", is_number=True),
)
#: Name, field and help of what only grows, and of what does not.
_COUNTERS: Final = (
    ("sent", "Records that the canary sent to a broker."),
    ("received", "Of these, records that came back."),
    ("failed", "Records that the producer gave up."),
    ("skipped", "Records that were not sent, because too many were under way."),
)
_GAUGES: Final = (
    # An alarm that turns out to be none is taken back, so these are no counters.
    ("lost", "Records that were acknowledged and cannot come any more."),
    ("doubled", "Records that came more than once, each time beyond the first."),
    ("outstanding", "Records that are under way."),
    ("late", "Of these, records that are under way for too long."),
)


def print_figures(figures: Sequence[BrokerFigures], *, as_json: bool) -> None:
    if as_json:
        now_ms = time.time_ns() // 1_000_000
        for each in figures:
            print(json.dumps({"time": now_ms, **each._asdict()}), flush=True)
        return
    now = datetime.now(UTC)
    print_table(f"{now:%Y-%m-%dT%H:%M:%SZ}", _COLUMNS, [each._asdict() for each in figures])


def metric_pieces(figures: Sequence[BrokerFigures]) -> Iterator[str]:
    """The same for Prometheus, by broker."""
    names = [labels({"broker": each.broker_id}) for each in figures]

    def samples(field: str) -> list[Sample]:
        values = (getattr(each, field) for each in figures)
        return list(zip(names, values, strict=True))

    for field, text in _COUNTERS:
        yield from counter(f"headwater_canary_{field}_total", text, samples(field))
    for field, text in _GAUGES:
        yield from gauge(f"headwater_canary_{field}", text, samples(field))
    timed = [
        (labels({"broker": each.broker_id, "quantile": quantile}), value / 1000)
        for each in figures
        for quantile, value in (("0.5", each.p50_ms), ("0.99", each.p99_ms))
        if value is not None
    ]
    yield from gauge(
        "headwater_canary_round_trip_seconds",
        "From sending to reading, of the last 10,000 records.",
        timed,
    )


def last_words(figures: Sequence[BrokerFigures], *, was_waited_for: bool) -> list[str]:
    """What was wrong, as sentences; nothing if nothing was."""
    words = []
    for each in figures:
        through = f"through broker {each.broker_id}"
        if each.lost:
            words.append(f"{counted(each.lost, 'record')} sent {through} {_was(each.lost)} lost.")
        if each.doubled:
            words.append(
                f"{counted(each.doubled, 'record')} sent {through} {_was(each.doubled)} doubled."
            )
        if each.failed:
            words.append(f"{counted(each.failed, 'record')} could not be sent {through}.")
        if each.outstanding and was_waited_for:
            words.append(
                f"{counted(each.outstanding, 'record')} sent {through} "
                f"{_was(each.outstanding)} not back yet: late, and not known to be lost."
            )
    return words


def _was(count: int) -> str:
    return "was" if count == 1 else "were"
