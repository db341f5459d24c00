import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.base.checks import InvariantError
from headwater.client.consumer.committed.offset_and_metadata import OffsetAndMetadata
from headwater.client.consumer.workers.tracker import OffsetTracker


@given(st.lists(st.integers(1, 4), min_size=1, max_size=30), st.randoms(use_true_random=False))
def test_commits_up_to_the_oldest_that_is_not_done(steps: list[int], order: random.Random) -> None:
    tracker = OffsetTracker()
    assert tracker.committable is None
    begun: list[int] = []
    undone: set[int] = set()
    offset = 3
    while steps or undone:
        if steps and (not undone or order.random() < 0.5):
            offset += steps.pop()
            tracker.begin(offset, leader_epoch=offset // 7)
            begun.append(offset)
            undone.add(offset)
        else:
            finished = order.choice(sorted(undone))
            tracker.finish(finished)
            undone.remove(finished)
        expected = min(undone, default=begun[-1] + 1)
        last_done = max([done for done in begun if done < expected], default=None)
        epoch = -1 if last_done is None else last_done // 7
        assert tracker.committable == OffsetAndMetadata(expected, "", epoch)
        assert tracker.window_size == sum(one >= expected for one in begun)
        assert tracker.next_offset == begun[-1] + 1


def test_offsets_grow_and_are_done_once() -> None:
    tracker = OffsetTracker()
    tracker.begin(5)
    tracker.begin(9)
    with pytest.raises(InvariantError):
        tracker.begin(9)
    tracker.finish(9)
    with pytest.raises(InvariantError):
        tracker.finish(9)
    tracker.finish(5)
    with pytest.raises(InvariantError):
        tracker.finish(5)
