"""Which level a delay becomes, and what a producer writes for it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.base.errors import InvalidTopicError
from headwater.client.producer.delay_levels import (
    LEVELS,
    Level,
    level_for,
    level_record,
    parse_levels,
)


def test_the_levels_are_those_of_the_design() -> None:
    assert [level.name for level in LEVELS] == [
        *("5s", "10s", "30s", "1m", "2m", "5m", "10m", "20m", "30m", "45m", "1h", "2h")
    ]
    assert LEVELS[2].topic == "__delay_30s"


def test_17_seconds_are_forced_up_to_30_which_is_13_too_late() -> None:
    record = level_record("orders", 17_000, (("trace", b"1"),), partition=3)
    assert record.topic == "__delay_30s"
    assert record.error_ms == 13_000
    assert record.headers == (
        ("trace", b"1"),
        ("headwater-topic", b"orders"),
        ("headwater-partition", b"3"),
    )


@given(st.integers(0, LEVELS[-1].delay_ms))
def test_the_level_is_the_next_one_and_the_error_less_than_a_step(delay_ms: int) -> None:
    level = level_for(delay_ms)
    shorter = [each.delay_ms for each in LEVELS if each.delay_ms < level.delay_ms]
    assert max(shorter, default=-1) < delay_ms <= level.delay_ms


@pytest.mark.parametrize(
    ("delay_ms", "sentence"),
    [
        (7_200_001, "A delay of 7200001ms is longer than the longest level, 2h."),
        (-1, "A delay cannot be negative, and this one is -1 ms."),
    ],
)
def test_a_delay_without_a_level_is_refused(delay_ms: int, sentence: str) -> None:
    with pytest.raises(ValueError, match="delay") as refused:
        level_for(delay_ms)
    assert str(refused.value) == sentence


def test_levels_are_read_and_named_in_one_spelling() -> None:
    levels = parse_levels("250ms, 60s,90s , 2h")
    assert levels == (Level(250), Level(60_000), Level(90_000), Level(7_200_000))
    assert [level.topic for level in levels] == [
        *("__delay_250ms", "__delay_1m", "__delay_90s", "__delay_2h")
    ]


@pytest.mark.parametrize("text", ["", "5s,", "0s", "10s,5s", "60s,1m", "5x", "400d"])
def test_bad_levels_are_refused_with_a_sentence(text: str) -> None:
    with pytest.raises(ValueError, match=r"\.$"):
        parse_levels(text)


def test_a_bad_topic_is_refused_before_anything_is_written() -> None:
    with pytest.raises(InvalidTopicError):
        level_record("no topic", 1000)
