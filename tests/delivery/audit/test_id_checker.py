"""The checker of ids against a plain model: sets of numbers."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.base.audit_id import AuditId, AuditStream, audit_id_of, decode_audit_id
from headwater.base.durations import LONG_MAX
from headwater.delivery.audit.id_checker import IdChecker, IdRange
from headwater.delivery.audit.id_runs import IdRuns

STREAM = AuditStream(7, 0)

#: Few processes, partitions and numbers, so that many come again and many are missing.
IDS = st.builds(
    AuditId,
    st.integers(0, 1),
    st.sampled_from([-1, 0, 1]),
    st.integers(0, 12),
    st.integers(0, 30),
)


def numbers(ranges: list[IdRange]) -> list[tuple[AuditStream, int, bool]]:
    return [
        (each.stream, number, each.is_open)
        for each in ranges
        for number in range(each.first, each.last + 1)
    ]


def fed(ids: list[AuditId], **limits: int) -> IdChecker:
    checker = IdChecker(**limits)
    for each in ids:
        checker.feed(each)
    return checker


@given(st.lists(IDS), st.integers(0, 30), st.integers(0, 30), st.booleans())
def test_it_tells_what_a_model_tells(
    ids: list[AuditId], from_ms: int, settled_ms: int, begins_at_zero: bool
) -> None:
    checker = IdChecker(from_ms=from_ms, settled_ms=settled_ms)
    count: Counter[tuple[AuditStream, int]] = Counter()
    for each in ids:
        assert checker.feed(each) == (count[each.stream, each.number] == 0)
        count[each.stream, each.number] += 1
    missing, doubled = [], []
    for stream in sorted({each.stream for each in ids}):
        own = [each for each in ids if each.stream == stream]
        seen = {each.number for each in own}
        young = {each.number for each in own if each.time_ms >= from_ms}
        settled = max([each.number for each in own if each.time_ms <= settled_ms], default=-1)
        if not young:
            continue
        for number in range(0 if begins_at_zero else min(seen), max(seen)):
            above = min(each for each in seen if each >= number)
            if number not in seen and above >= min(young):
                missing.append((stream, number, above > settled))
        doubled += [
            (stream, number, False)
            for number in sorted(seen)
            if count[stream, number] > 1 and number >= min(young)
        ]
    assert numbers(list(checker.missing(begins_at_zero=begins_at_zero))) == missing
    assert numbers(list(checker.doubled())) == doubled
    assert checker.id_count == len(count)
    assert checker.again_count == len(ids) - len(count)
    assert checker.is_complete


@given(st.lists(IDS), st.lists(IDS))
def test_two_places_are_compared_id_by_id(here: list[AuditId], there: list[AuditId]) -> None:
    absent = {(each.stream, each.number) for each in here} - {
        (each.stream, each.number) for each in there
    }
    told = numbers(list(fed(here).not_in(fed(there))))
    assert told == [(*each, False) for each in sorted(absent)]


@given(st.lists(IDS), st.integers(0, 3), st.integers(0, 6))
def test_with_too_little_memory_nothing_is_told_that_is_not_so(
    ids: list[AuditId], streams_max: int, runs_max: int
) -> None:
    full, poor = fed(ids), fed(ids, streams_max=streams_max, runs_max=runs_max)
    assert set(numbers(list(poor.missing()))) <= set(numbers(list(full.missing())))
    assert set(numbers(list(poor.doubled()))) <= set(numbers(list(full.doubled())))
    assert list(full.not_in(poor)) == [] or not poor.is_complete or full.id_count > poor.id_count
    if poor.is_complete:
        assert list(poor.missing()) == list(full.missing())
        assert list(poor.doubled()) == list(full.doubled())


def test_a_stream_of_which_nothing_is_missing_is_one_run() -> None:
    runs = IdRuns()
    for number in range(10_000):
        if not runs.follows_last(number):
            runs.add(number)
    assert len(runs) == 1
    assert runs.number_count == 10_000


def test_what_the_memory_did_not_suffice_for_is_counted() -> None:
    checker = fed([AuditId(7, 0, number, 0) for number in range(0, 20, 2)], runs_max=3)
    assert checker.unchecked_count == 7
    assert not checker.is_complete
    assert list(checker.missing()) == [], "of this stream it is not known"
    assert list(fed([AuditId(7, 0, 1, 0)]).not_in(checker)) == []


def test_missing_and_aborted_are_told_apart() -> None:
    checker = fed([AuditId(7, 0, number, 0) for number in (3, 4, 9)])
    came, absent = checker.parted([IdRange(STREAM, 2, 5), IdRange(STREAM, 8, 9)])
    assert [str(each) for each in came] == [f"{7:016x}/0#3-4", f"{7:016x}/0#9"]
    assert [(each.first, each.last) for each in absent] == [(2, 2), (5, 5), (8, 8)]


def test_an_id_is_in_the_header_as_it_is_documented() -> None:
    audit_id = AuditId(0x9F3C2A1B7D004E55, 3, 1234, 1_700_000_000_000)
    content = audit_id.encode()
    assert content.hex() == "019f3c2a1b7d004e550000000300000000000004d20000018bcfe56800"
    assert audit_id_of([("a", b"b"), ("headwater-audit", content)]) == audit_id
    assert str(audit_id) == "9f3c2a1b7d004e55/3#1234"
    assert str(audit_id._replace(partition=-1)) == "9f3c2a1b7d004e55#1234"


@pytest.mark.parametrize("content", [None, b"", b"\x02" + bytes(28), bytes(29), b"\x01" * 30])
def test_what_is_no_id_is_none(content: bytes | None) -> None:
    assert decode_audit_id(content) is None
    assert audit_id_of([("headwater-audit", content)]) is None


def test_the_numbers_of_an_id_are_in_bounds() -> None:
    assert decode_audit_id(AuditId(1, -2, 0, 0).encode()) is None
    assert decode_audit_id(AuditId(1, 0, -1, 0).encode()) is None
    assert decode_audit_id(AuditId(1, 0, LONG_MAX, -1).encode()) is not None
