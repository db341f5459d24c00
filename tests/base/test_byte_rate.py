"""A rate over windows of time: what counts, for how long, and when there is room again."""

import random

import pytest

from headwater.base.byte_rate import ByteRate


def test_a_rate_is_measured_over_the_time_since_the_first_window_began() -> None:
    rate = ByteRate()
    assert rate.per_second(0) == 0
    rate.record(1000, 0)
    assert rate.per_second(0) == 1000, "a burst counts as if it had taken a second"
    rate.record(1000, 500)
    assert rate.per_second(500) == 2000
    assert rate.per_second(4000) == 500
    rate.record(2000, 4000)
    assert rate.per_second(4000) == 1000


def test_old_windows_are_forgotten() -> None:
    rate = ByteRate(window_count=3, window_ms=100)
    rate.record(100, 0)
    rate.record(50, 150)
    assert rate.per_second(299) == pytest.approx(150 * 1000 / 299)
    assert rate.per_second(300) == pytest.approx(50 * 1000 / 150)
    assert rate.per_second(10_000) == 0


def test_who_is_within_the_limit_need_not_wait() -> None:
    rate = ByteRate()
    assert rate.wait_ms(0, 0) == 0
    rate.record(1000, 0)
    assert rate.wait_ms(1000, 0) == 0
    assert rate.wait_ms(999, 0) == pytest.approx(1001, abs=1)


def test_time_gives_room() -> None:
    rate = ByteRate()
    rate.record(5000, 100)
    assert rate.wait_ms(1000, 100) == 5000
    assert rate.wait_ms(1000, 4100) == 1000
    assert rate.wait_ms(1000, 5100) == 0


def test_what_is_forgotten_gives_room_too() -> None:
    rate = ByteRate()
    rate.record(1_000_000, 0)
    assert rate.wait_ms(10, 0) == 11_000
    rate.record(1, 6000)
    assert rate.wait_ms(10, 6000) == 5000
    assert rate.wait_ms(0, 6000) == 11_000, "a limit of nothing waits until all is forgotten"


def test_windows_are_bounded() -> None:
    rate = ByteRate(window_count=3, window_ms=10)
    for now_ms in range(0, 1000, 10):
        rate.record(1, now_ms)
    assert rate.per_second(990) == pytest.approx(3 * 1000 / 20)


@pytest.mark.parametrize("seed", range(20))
def test_the_wait_is_exact_and_the_limit_is_kept(seed: int) -> None:
    source = random.Random(seed)
    rate, limit, now_ms, carried = ByteRate(), source.randint(1, 10_000), 0.0, 0
    for _ in range(300):
        wait_ms = rate.wait_ms(limit, now_ms)
        if wait_ms:
            assert rate.wait_ms(limit, now_ms + wait_ms / 2) > 0
            now_ms += wait_ms
        assert rate.wait_ms(limit, now_ms) == 0
        # What is forgotten at this very moment may count yet, by what rounding leaves.
        assert rate.per_second(now_ms + 0.01) <= limit * 1.001
        size_bytes = source.randint(0, 3 * limit)
        rate.record(size_bytes, now_ms)
        carried += size_bytes
        now_ms += source.choice((0, 0, 1, 300, 2500))
    # A first burst is let through, and after that no more than the limit allows over the windows.
    assert carried <= limit * (now_ms / 1000 + 3) * 1.3
