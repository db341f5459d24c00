"""A filter means the letters for which all of its conditions hold."""

from __future__ import annotations

from typing import Any

import pytest

from headwater.delivery.redrive.letters.letter import read_letter
from headwater.delivery.redrive.letters.letter_filter import LetterFilter
from tests.support.values.dead_letters import letter_record, our_headers

LETTER = read_letter(letter_record(*our_headers(1234)))


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"group": "billing"},
        {"topic": "orders"},
        {"origin": "orders-0@1234"},
        {"error": "NO MONEY"},
        {"error": "refused"},
        {"key": b"key"},
        {"headers": (("trace", b"abc"),)},
        {"from_ms": 5000, "to_ms": 5001},
    ],
)
def test_what_holds(given: dict[str, Any]) -> None:
    wanted = LetterFilter(**given)
    assert wanted.matches(LETTER)
    assert LetterFilter.from_json(wanted.as_json()) == wanted


@pytest.mark.parametrize(
    "given",
    [
        {"group": "shipping"},
        {"topic": "order"},
        {"origin": "orders-0@1235"},
        {"error": "timeout"},
        {"key": b"k"},
        {"headers": (("trace", b"abd"),)},
        {"headers": (("trace", b"abc"), ("span", b"1"))},
        {"from_ms": 5001},
        {"to_ms": 5000},
        {"group": "billing", "error": "timeout"},
    ],
)
def test_what_does_not(given: dict[str, Any]) -> None:
    assert not LetterFilter(**given).matches(LETTER)


def test_who_tells_nothing_is_meant_by_nobody_in_particular() -> None:
    silent = read_letter(letter_record()._replace(timestamp=-1))
    assert LetterFilter().matches(silent)
    for wanted in (
        LetterFilter(group="g"),
        LetterFilter(topic="t"),
        LetterFilter(error="e"),
        LetterFilter(from_ms=0),
    ):
        assert not wanted.matches(silent)
