import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.client.partitioner import murmur2, partition_for_key

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
