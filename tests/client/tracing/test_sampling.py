"""The sampler traces the share of a topic's records that it was told."""

import random

from hypothesis import given
from hypothesis import strategies as st

from headwater.client.tracing.sampling import Sampler

RECORDS = 4000


def taken(share: float, seed: int) -> list[int]:
    """Which records are traced."""
    sampler = Sampler(random.Random(seed))
    sampler.set_share("orders", share)
    return [number for number in range(RECORDS) if sampler.take("orders")]


@given(st.integers())
def test_nothing_and_everything(seed: int) -> None:
    assert not taken(0.0, seed)
    assert len(taken(1.0, seed)) == RECORDS


def test_a_share_is_that_share() -> None:
    for share in (0.001, 0.01, 0.1, 0.5, 0.9):
        # Seeds are fixed; six standard deviations leave room for any others.
        deviation = (RECORDS * share * (1 - share)) ** 0.5
        for seed in range(5):
            assert abs(len(taken(share, seed)) - RECORDS * share) <= 6 * deviation


def test_no_place_is_preferred() -> None:
    """Every tenth record of a cycle of ten would be a tenth too, and tell of one kind alone."""
    places = {number % 10 for seed in range(20) for number in taken(0.1, seed)}
    assert places == set(range(10))


@given(st.floats(0.0, 1.0), st.integers())
def test_what_is_left_out_need_not_ask(share: float, seed: int) -> None:
    """Who looks at `left` himself and counts decides as `take` does."""
    sampler = Sampler(random.Random(seed))
    sampler.set_share("orders", share)
    found: list[int] = []
    for number in range(200):
        left = sampler.left["orders"]
        if left:
            sampler.left["orders"] = left - 1
        else:
            assert sampler.take("orders")
            found.append(number)
    assert found == [number for number in taken(share, seed) if number < 200]


def test_a_share_may_change_and_a_topic_be_unknown() -> None:
    sampler = Sampler(random.Random(1))
    assert sampler.share("orders") is None
    assert not sampler.take("orders")
    assert sampler.topics == []
    sampler.set_share("orders", 0.0)
    assert not sampler.take("orders")
    sampler.set_share("orders", 1.0)
    assert sampler.take("orders")
    sampler.set_share("orders", 0.0)
    assert not sampler.take("orders")
    assert (sampler.topics, sampler.share("orders")) == (["orders"], 0.0)
