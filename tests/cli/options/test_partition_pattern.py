import pytest
import typer

from headwater.base.ids import TopicPartition
from headwater.cli.options.partition_pattern import (
    accept_topics_and_numbers,
    parse_partition_patterns,
)

PARTITIONS = [TopicPartition(topic, number) for topic in ("a", "b") for number in range(4)]


@pytest.mark.parametrize(
    ("text", "chosen"),
    [
        ("a", "a0 a1 a2 a3"),
        ("a:1", "a1"),
        ("a:1-3", "a1 a2"),
        ("a:2-", "a2 a3"),
        ("a:-2", "a0 a1"),
        ("a:", "a0 a1 a2 a3"),
        (":0", "a0 b0"),
        ("[ab]:3,b:0", "a3 b0 b3"),
        ("a:0,a:2", "a0 a2"),
        ("c", ""),
    ],
)
def test_patterns_of_topics_and_partitions(text: str, chosen: str) -> None:
    accept = parse_partition_patterns(text)
    found = [f"{key.topic}{key.partition}" for key in PARTITIONS if accept(key)]
    assert " ".join(sorted(found)) == chosen


@pytest.mark.parametrize("text", ["a:x", "a:1:2", "a:1-2-3"])
def test_what_makes_no_sense_is_told(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="should be like topic"):
        parse_partition_patterns(text)


def test_a_topic_and_numbers() -> None:
    accept = accept_topics_and_numbers("a|c", "0,3")
    assert [key for key in PARTITIONS if accept(key)] == [PARTITIONS[0], PARTITIONS[3]]
    assert all(map(accept_topics_and_numbers(None, None), PARTITIONS))
    with pytest.raises(typer.BadParameter, match="should be numbers"):
        accept_topics_and_numbers("a", "0,x")
