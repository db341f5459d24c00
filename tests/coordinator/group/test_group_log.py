"""What the log hears of groups, and how much of it."""

import logging

import pytest

from headwater.coordinator.group.group_log import LINES_MAX, GroupLog


def test_a_group_that_rebalances_all_the_time_does_not_fill_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    log = GroupLog()
    for number in range(1_000):
        log.rebalances("g" * 30_000, number, "m joins", 5_000 + number)
    log.loses("g", "m", "it missed its session", 60_000)
    assert len(caplog.messages) == LINES_MAX + 1
    assert all(len(line) < 300 for line in caplog.messages)
    assert caplog.messages[-1] == (
        f"The group g loses m: it missed its session. ({1_000 - LINES_MAX} lines about groups were "
        "left out.)"
    )
