"""When the breaker of a retry topic's partition is open."""

from __future__ import annotations

from headwater.storage.breaker import Breaker
from headwater.storage.log_config import BreakerRules

RULES = BreakerRules(letters=3, window_ms=100)


def test_it_opens_for_a_window_when_so_many_are_given_up_within_one() -> None:
    breaker = Breaker()
    breaker.add(2, RULES, 1000)
    assert not breaker.is_open(RULES, 1000)
    # These come a window later, so they are counted anew.
    breaker.add(2, RULES, 1100)
    assert not breaker.is_open(RULES, 1100)
    breaker.add(1, RULES, 1150)
    assert breaker.is_open(RULES, 1150)
    assert breaker.is_open(RULES, 1249)
    assert not breaker.is_open(RULES, 1250)


def test_it_stays_open_while_as_many_come_again() -> None:
    breaker = Breaker()
    breaker.add(3, RULES, 1000)
    breaker.add(3, RULES, 1090)
    assert breaker.is_open(RULES, 1150)
    assert not breaker.is_open(RULES, 1190)


def test_a_clock_that_is_set_back_does_not_keep_it_open() -> None:
    breaker = Breaker()
    breaker.add(3, RULES, 1_000_000)
    assert not breaker.is_open(RULES, 5000)
    breaker.add(3, RULES, 5000)
    assert breaker.is_open(RULES, 5050)


def test_it_can_be_switched_off() -> None:
    breaker = Breaker()
    off = RULES._replace(letters=0)
    breaker.add(1000, off, 1000)
    assert not breaker.is_open(off, 1000)
