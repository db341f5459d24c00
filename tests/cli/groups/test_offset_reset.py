"""The arithmetic of reset-offsets, by properties and by examples of how moments are written."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st

from headwater.cli.groups.offset_reset import (
    NothingCommittedError,
    OffsetReset,
    PartitionPlace,
    ResetKind,
    parse_iso_duration_ms,
    parse_moment_ms,
)
from headwater.cli.groups.reset_options import parse_reset

OFFSETS = st.integers(0, 2**62)
NUMBERS = st.integers(-(2**62), 2**62)
DAY_MS = 86_400_000


@st.composite
def places(draw: st.DrawFn) -> PartitionPlace:
    earliest = draw(OFFSETS)
    latest = earliest + draw(st.integers(0, 1000))
    return PartitionPlace(
        earliest,
        latest,
        draw(st.none() | OFFSETS),
        draw(st.none() | st.integers(earliest, latest)),
    )


@given(places(), st.sampled_from(ResetKind), NUMBERS)
def test_a_new_offset_is_one_that_the_partition_holds(
    place: PartitionPlace, kind: ResetKind, number: int
) -> None:
    if kind is ResetKind.SHIFT and place.committed is None:
        with pytest.raises(NothingCommittedError):
            OffsetReset(kind, number).apply(place)
        return
    offset = OffsetReset(kind, number).apply(place)
    if kind is ResetKind.CURRENT and place.committed is not None:
        assert offset == place.committed
    else:
        assert place.earliest <= offset <= place.latest


@given(places(), NUMBERS)
def test_a_shift_moves_by_just_so_much_or_to_the_nearest_end(
    place: PartitionPlace, shift: int
) -> None:
    committed = place.earliest if place.committed is None else place.committed
    place = place._replace(committed=committed)
    offset = OffsetReset(ResetKind.SHIFT, shift).apply(place)
    if place.earliest <= committed + shift <= place.latest:
        assert offset - committed == shift
    elif committed + shift < place.earliest:
        assert offset == place.earliest
    else:
        assert offset == place.latest


@given(places())
def test_there_and_back_again(place: PartitionPlace) -> None:
    """A shift that stays inside is undone by its opposite."""
    here = place._replace(committed=place.clamp(place.committed or 0))
    there = OffsetReset(ResetKind.SHIFT, 3).apply(here)
    assert here.committed is not None
    moved = there - here.committed
    back = OffsetReset(ResetKind.SHIFT, -moved).apply(here._replace(committed=there))
    assert back == here.committed


@given(places(), NUMBERS)
def test_named_places(place: PartitionPlace, number: int) -> None:
    assert OffsetReset(ResetKind.EARLIEST).apply(place) == place.earliest
    assert OffsetReset(ResetKind.LATEST).apply(place) == place.latest
    expected = place.latest if place.at_time is None else place.at_time
    assert OffsetReset(ResetKind.TIME, number).apply(place) == expected
    fresh = place._replace(committed=None)
    assert OffsetReset(ResetKind.CURRENT).apply(fresh) == place.latest
    assert OffsetReset(ResetKind.OFFSET, number).wanted(place) == number


@given(
    st.integers(0, 10_000),
    st.integers(0, 999),
    st.integers(0, 999),
    st.integers(0, 100_000),
    st.integers(0, 999),
    st.booleans(),
)
def test_durations_add_up(
    days: int, hours: int, minutes: int, seconds: int, millis: int, negative: bool
) -> None:
    text = f"{'-' if negative else ''}P{days}DT{hours}H{minutes}M{seconds}.{millis:03}S"
    expected = timedelta(
        days=days, hours=hours, minutes=minutes, seconds=seconds, milliseconds=millis
    )
    expected_ms = expected // timedelta(milliseconds=1)
    assert parse_iso_duration_ms(text) == (-expected_ms if negative else expected_ms)
    assert parse_iso_duration_ms(text.lower()) == parse_iso_duration_ms(text)


@pytest.mark.parametrize(
    ("text", "expected_ms"),
    [
        ("P7D", 7 * DAY_MS),
        ("PT1H30M", 5_400_000),
        ("P1DT12H", DAY_MS + 43_200_000),
        ("PT0.5S", 500),
        ("PT-0.5S", -500),
        ("PT1,25S", 1250),
        ("PT1.S", 1000),
        ("PT1.0009S", 1000),
        ("-PT1M", -60_000),
        ("+P-1D", -DAY_MS),
        ("PT0S", 0),
    ],
)
def test_durations_as_java_writes_them(text: str, expected_ms: int) -> None:
    assert parse_iso_duration_ms(text) == expected_ms


@pytest.mark.parametrize(
    "text", ["", "P", "PT", "7D", "P1W", "P1Y", "PT1H30", "P1D2H", "PT1M1H", "P1DT", "1h", "P1.5D"]
)
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="should be like P7D"):
        parse_iso_duration_ms(text)


@given(
    st.datetimes(min_value=datetime(1970, 1, 2), max_value=datetime(2500, 1, 1)),
    st.integers(-14 * 60, 14 * 60),
)
def test_moments_are_in_utc_unless_they_say_otherwise(moment: datetime, offset: int) -> None:
    moment = moment.replace(microsecond=moment.microsecond // 1000 * 1000)
    expected = round(moment.replace(tzinfo=UTC).timestamp() * 1000)
    for timespec in ("milliseconds", "microseconds"):
        text = moment.isoformat(timespec=timespec)
        assert parse_moment_ms(text) == expected
        assert parse_moment_ms(f"{text}Z") == expected
    elsewhere = moment.replace(tzinfo=timezone(timedelta(minutes=offset)))
    assert parse_moment_ms(elsewhere.isoformat()) == expected - offset * 60_000


@pytest.mark.parametrize("text", ["noon", "2026-13-01T00:00:00", "", "1767225600000"])
def test_what_is_no_moment(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="should be like 2026"):
        parse_moment_ms(text)


def test_times_before_the_epoch_do_not_become_the_protocols_own_numbers() -> None:
    for options in (
        {"to_datetime": "1960-01-01T00:00:00"},
        {"to_datetime": "1969-12-31T23:59:59.999"},
        {"by_duration": "P40000D"},
    ):
        rule = parse_reset(
            to_earliest=False,
            to_latest=False,
            to_current=False,
            to_offset=None,
            shift_by=None,
            to_datetime=options.get("to_datetime"),
            by_duration=options.get("by_duration"),
            from_file=None,
        )
        assert rule == OffsetReset(ResetKind.TIME, 0)
