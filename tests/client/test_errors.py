import pytest

from headwater.base.errors import ErrorCode
from headwater.client.errors import UnknownTopicError, refusal, topic_refusal
from headwater.client.kafka_errors import TopicAuthorizationFailedError


@pytest.mark.parametrize(
    ("code", "message", "sentence"),
    [
        (36, "Topic 'x' already exists.", "Topic 'x' already exists."),
        (36, "Two\n lines", "Two lines."),
        (36, None, f"Topic x: {ErrorCode.TOPIC_ALREADY_EXISTS.message}"),
        (36, "", f"Topic x: {ErrorCode.TOPIC_ALREADY_EXISTS.message}"),
        (-1, None, f"Topic x: {ErrorCode.UNKNOWN_SERVER_ERROR.message}"),
        (31_000, None, "Topic x: The broker answered with error code 31000."),
    ],
)
def test_a_refusal_is_one_sentence(code: int, message: str | None, sentence: str) -> None:
    error = refusal(code, message, "Topic x")
    assert str(error) == sentence
    assert error.code is ErrorCode.from_wire(code)


def test_an_unknown_topic_is_always_told_in_the_same_way() -> None:
    error = topic_refusal(3, "This server does not host this topic-partition.", "orders")
    assert isinstance(error, UnknownTopicError)
    assert str(error) == "There is no topic 'orders'."
    assert type(topic_refusal(29, None, "orders")) is TopicAuthorizationFailedError


@pytest.mark.parametrize(
    ("count", "there_are"), [(1, "partition 0 only"), (3, "partitions 0 to 2")]
)
def test_an_unknown_partition_tells_which_there_are(count: int, there_are: str) -> None:
    error = UnknownTopicError.partition("orders", 7, count)
    assert str(error) == f"Topic 'orders' has no partition 7: it has {there_are}."
