"""Where groups and transactional ids live: the same place as for every Kafka client and broker."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.coordinator.key_hash import java_string_hash, partition_for


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 0),
        ("a", 97),
        ("group", 98_629_247),
        ("hello", 99_162_322),
        ("Hello World", -862_545_276),
        # The shortest collision.
        ("Aa", 2112),
        ("BB", 2112),
        # The hash without a positive counterpart.
        ("polygenelubricants", -(2**31)),
        ("\N{GRINNING FACE}", 1_772_899),
    ],
)
def test_the_hash_is_javas(text: str, expected: int) -> None:
    assert java_string_hash(text) == expected


def test_the_smallest_hash_belongs_to_partition_zero() -> None:
    assert partition_for("polygenelubricants", 50) == 0


@given(st.text(), st.integers(1, 100))
def test_every_key_has_a_partition(key: str, partition_count: int) -> None:
    assert 0 <= partition_for(key, partition_count) < partition_count


@given(st.text(max_size=8), st.text(max_size=8))
def test_the_hash_of_a_whole_follows_from_its_parts(head: str, tail: str) -> None:
    units = len(tail.encode("utf-16-be", "surrogatepass")) // 2
    expected = (java_string_hash(head) * 31**units + java_string_hash(tail)) % 2**32
    assert java_string_hash(head + tail) % 2**32 == expected
