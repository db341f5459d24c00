"""Which messages were slow, from made-up steps and rows."""

import pytest

from headwater.base.message_id import MessageId
from headwater.delivery.trace.event import Source
from headwater.delivery.trace.slowest import slow_by_audit, slow_by_steps, slowest
from tests.support.traces.made_up import group_row, log_row, step

ROWS = [
    log_row("orders-0@100", (0, 100, 100), (1, 110, 100), (2, 120, 110), (6, 120, 120)),
    group_row("orders-0@100", "billing", (4, 110), (50, 120)),
    log_row("mails-0@100", (0, 100, 100), (90, 110, 110)),
]
STEPS = [
    step("acknowledged", 1, "orders-0@105"),
    step("fetched", 3, "orders-0@105", host="worker", group="billing"),
    step("handled", 7, "orders-0@105", host="worker", group="billing"),
    step("committed", 8, "orders-0@105", host="worker", group="billing"),
    step("fetched", 1, "mails-0@5", host="worker", group="billing"),
]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("replication", [(119, 4_000, None), (109, 1_000, None)]),
        ("lag", [(119, 48_000, "billing"), (109, 3_000, "billing")]),
        ("handling", []),
    ],
)
def test_the_audit_tells_of_the_last_record_of_each_second(
    name: str, expected: list[tuple[int, int, str | None]]
) -> None:
    found = slowest(slow_by_audit(ROWS, "orders", name))
    assert [(each.id.offset, each.duration_ms, each.group) for each in found] == expected
    assert {each.within_ms for each in found} <= {2_000}


@pytest.mark.parametrize(("name", "duration_ms"), [("lag", 2_000), ("handling", 4_000)])
def test_steps_tell_of_each_message(name: str, duration_ms: int) -> None:
    (found,) = slow_by_steps(STEPS, "orders", name)
    assert (found.id, found.duration_ms) == (MessageId("orders", 0, 105), duration_ms)
    assert (found.group, found.within_ms, found.source) == ("billing", 0, Source.WRITTEN)


def test_what_a_client_wrote_counts_before_what_brokers_saw() -> None:
    told = step("fetched", 2, "orders-0@119", host="worker", group="billing")
    acknowledged = step("acknowledged", 1, "orders-0@119")
    both = [
        *slow_by_steps([acknowledged, told], "orders", "lag"),
        *slow_by_audit(ROWS, "orders", "lag"),
    ]
    assert [(each.id.offset, each.duration_ms) for each in slowest(both)] == [
        (109, 3_000),
        (119, 1_000),
    ]


def test_points_that_are_none_are_passed_over() -> None:
    odd = {**log_row("orders-0@0", (0, 0, 0), (1, 5, 5)), "points": [["x"], None, [1, 2], 7]}
    assert slowest(slow_by_audit([odd], "orders", "replication")) == []
