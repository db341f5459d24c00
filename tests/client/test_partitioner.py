import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.client.partitioner import StickyPartitions, murmur2, partition_for_key

# Pairs of key and hash as Java's client computes them, signed as Java shows them.
JAVA_HASHES = {
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
}


@pytest.mark.parametrize(("key", "hashed"), JAVA_HASHES.items())
def test_the_hash_is_javas(key: bytes, hashed: int) -> None:
    assert murmur2(key) == hashed & 0xFFFF_FFFF
    assert partition_for_key(key, 12) == (hashed & 0x7FFF_FFFF) % 12


@given(key=st.binary(max_size=200), count=st.integers(1, 1000))
def test_a_key_always_goes_to_the_same_partition(key: bytes, count: int) -> None:
    first = partition_for_key(key, count)
    assert 0 <= first < count
    assert partition_for_key(bytes(bytearray(key)), count) == first
    assert first == (murmur2(key) & 0x7FFF_FFFF) % count


def test_records_without_a_key_stay_until_they_move_on() -> None:
    sticky = StickyPartitions(random.Random(7))
    candidates = [0, 1, 2, 3]
    used: Counter[int] = Counter()
    for _ in range(4000):
        partition = sticky.current("topic", candidates)
        assert sticky.current("topic", candidates) == partition
        used[partition] += 1
        sticky.move_on("topic", partition, candidates)
        assert sticky.current("topic", candidates) != partition
    assert used.keys() == set(candidates)
    assert min(used.values()) > 800


def test_moving_on_from_elsewhere_changes_nothing() -> None:
    sticky = StickyPartitions(random.Random(1))
    partition = sticky.current("topic", [0, 1])
    sticky.move_on("topic", 1 - partition, [0, 1])
    sticky.move_on("other", partition, [0, 1])
    assert sticky.current("topic", [0, 1]) == partition


def test_a_partition_that_is_no_candidate_any_more_is_left() -> None:
    sticky = StickyPartitions(random.Random(1))
    partition = sticky.current("topic", [0, 1])
    assert sticky.current("topic", [1 - partition]) == 1 - partition
    sticky.move_on("topic", 1 - partition, [1 - partition])
    assert sticky.current("topic", [1 - partition]) == 1 - partition
