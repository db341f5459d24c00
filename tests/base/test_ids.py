import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import (
    METADATA_TOPIC_ID,
    ZERO_TOPIC_ID,
    TopicPartition,
    new_topic_id,
    topic_id_from_text,
    topic_id_to_text,
    validate_topic_name,
)

_NAME_ALPHABET = "abzAZ059._-"
_TOPIC_NAMES = st.text(_NAME_ALPHABET, min_size=1, max_size=249).filter(
    lambda name: name not in (".", "..")
)


@given(_TOPIC_NAMES, st.integers(0, 2**31 - 1))
def test_directory_names_round_trip(topic: str, partition: int) -> None:
    validate_topic_name(topic)
    named = TopicPartition(topic, partition)
    assert TopicPartition.from_directory_name(str(named)) == named


def test_the_last_dash_parts_topic_and_partition() -> None:
    assert TopicPartition.from_directory_name("a-b-3") == ("a-b", 3)
    assert str(TopicPartition("__consumer_offsets", 49)) == "__consumer_offsets-49"


@pytest.mark.parametrize(
    "name",
    [
        "",
        "orders",
        "-0",
        "orders-",
        "orders-x",
        "orders--",
        "orders-01",
        "orders-+1",
        "orders- 1",
        "orders-2147483648",
        "orders-\u0663",
        "or ders-0",
        "..-0",
        "orders-0\n",
        "orders-0.0123456789abcdef0123456789abcdef-delete",
    ],
)
def test_other_names_are_no_partitions(name: str) -> None:
    with pytest.raises(ValueError, match="not the directory of a partition"):
        TopicPartition.from_directory_name(name)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "empty"),
        (".", "directory"),
        ("..", "directory"),
        ("x" * 250, "250 characters"),
        ("a b", "character other"),
        ("a\n", "character other"),
        ("caf\u00e9", "character other"),
        ("a/b", "character other"),
    ],
)
def test_bad_topic_names_say_why(name: str, reason: str) -> None:
    with pytest.raises(KafkaError, match=reason) as caught:
        validate_topic_name(name)
    assert caught.value.code is ErrorCode.INVALID_TOPIC_EXCEPTION


@given(st.uuids())
def test_topic_ids_round_trip_in_22_characters(topic_id: uuid.UUID) -> None:
    text = topic_id_to_text(topic_id)
    assert len(text) == 22
    assert topic_id_from_text(text) == topic_id


def test_topic_ids_read_as_kafka_prints_them() -> None:
    assert topic_id_to_text(ZERO_TOPIC_ID) == "AAAAAAAAAAAAAAAAAAAAAA"
    assert topic_id_to_text(METADATA_TOPIC_ID) == "AAAAAAAAAAAAAAAAAAAAAQ"
    assert topic_id_to_text(uuid.UUID("fbf0ffff-ffff-4fff-bfff-fffffffffffe")).startswith("-_D__")


@pytest.mark.parametrize(
    "text", ["", "A" * 21, "A" * 23, "A" * 24, "A" * 21 + "=", "A" * 21 + "+", "\u00e4" * 22]
)
def test_other_text_is_no_topic_id(text: str) -> None:
    with pytest.raises(ValueError, match="not a topic id"):
        topic_id_from_text(text)


def test_a_new_topic_id_is_neither_reserved_nor_like_an_option() -> None:
    dashed = uuid.UUID(bytes=b"\xf8" + bytes(15))
    assert topic_id_to_text(dashed).startswith("-")
    wanted = uuid.UUID(int=2**100)
    draws = iter([ZERO_TOPIC_ID, METADATA_TOPIC_ID, dashed, wanted])
    assert new_topic_id(lambda: next(draws)) == wanted
