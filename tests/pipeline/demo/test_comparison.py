"""A comparison finds what is missing, what is too many, and what is there twice."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headwater.pipeline.demo.calculation import Expected, PaidOrder, Revenue
from headwater.pipeline.demo.comparison import (
    Rejected,
    RevenueRow,
    compare_archive,
    compare_closed_revenue,
    compare_paid_orders,
    compare_rejected,
    compare_revenue,
    judge_findings,
    judge_lag,
)
from headwater.pipeline.demo.sending import SentRecord

EXPECTED = Expected(
    revenue={(0, "books"): Revenue(2, 300), (60_000, "games"): Revenue(1, 50)},
    closed_revenue={(0, "books"): Revenue(2, 300)},
    paid_orders=frozenset({PaidOrder("o-1", "p-1", "books", 100, 5_000, 4_000)}),
    rejected={"orders": [b"x", b"x"], "payments": [b""]},
    late_order_count=0,
    late_join_count=0,
    second_time_count=0,
)
ROWS = [RevenueRow(0, "books", Revenue(2, 300)), RevenueRow(60_000, "games", Revenue(1, 50))]
records = st.builds(
    SentRecord,
    st.sampled_from(["orders", "payments"]),
    st.integers(0, 1),
    st.integers(0, 5),
    st.binary(max_size=1),
    st.binary(max_size=1),
)


@given(st.lists(records, max_size=8))
def test_the_order_of_records_does_not_matter_and_their_number_does(
    sent: list[SentRecord],
) -> None:
    shuffled = sorted(sent, key=lambda record: record.offset, reverse=True)
    assert compare_archive(sent, shuffled).is_right
    for record in sent[:1]:
        assert not compare_archive(sent, [*sent, record]).is_right
        assert not compare_archive(sent, sent[1:]).is_right
        other = record._replace(value=record.value + b"!")
        assert not compare_archive(sent, [other, *sent[1:]]).is_right


def test_a_verdict_names_what_differs() -> None:
    assert compare_revenue(EXPECTED, ROWS).found == "2 rows"
    wrong = [ROWS[0]._replace(revenue=Revenue(2, 301)), ROWS[1], ROWS[1]]
    verdict = compare_revenue(EXPECTED, wrong)
    assert not verdict.is_right
    assert "1 rows missing, such as" in verdict.found
    assert "2 rows too many, such as" in verdict.found
    assert "cents=301" in verdict.found


def test_only_final_windows_are_wanted_in_the_topic() -> None:
    assert compare_closed_revenue(EXPECTED, ROWS[:1]).is_right
    assert not compare_closed_revenue(EXPECTED, ROWS).is_right
    assert not compare_closed_revenue(EXPECTED, ROWS[:1] * 2).is_right


def test_paid_orders_count_each_time_they_are_there() -> None:
    (row,) = EXPECTED.paid_orders
    assert compare_paid_orders(EXPECTED, [row]).is_right
    assert not compare_paid_orders(EXPECTED, [row, row]).is_right
    assert not compare_paid_orders(EXPECTED, []).is_right


def test_dead_letters_need_a_reason_and_must_be_all() -> None:
    found = [
        Rejected("orders", b"x", "because"),
        Rejected("orders", b"x", "because"),
        Rejected("payments", b"", "it is empty"),
    ]
    assert compare_rejected(EXPECTED, found).is_right
    assert not compare_rejected(EXPECTED, found[1:]).is_right
    unexplained = compare_rejected(EXPECTED, [*found[:2], found[2]._replace(reason="")])
    assert (unexplained.is_right, unexplained.found) == (False, "1 have no reason")
    assert not compare_rejected(EXPECTED, [found[0], found[0], found[0]]).is_right


def test_lag_must_be_known_and_nothing() -> None:
    assert judge_lag({"archive": 0, "join": 0}).found == "lag 0: archive, join"
    assert judge_lag({"archive": 0, "join": 1_200}).found == "join lags by 1,200"
    assert not judge_lag({"archive": 0, "join": 1_200}).is_right
    assert not judge_lag({}).is_right


def test_the_first_problem_of_the_archive_is_told() -> None:
    assert judge_findings([], "all is there").is_right
    verdict = judge_findings(["orders-0 has a gap", "and another"], "")
    assert (verdict.is_right, verdict.found) == (False, "orders-0 has a gap")
