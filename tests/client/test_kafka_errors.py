"""Every error code has its class, and the classes are good to catch, to read and to send on."""

import copy
import pickle
import traceback
from importlib import import_module
from types import ModuleType

import pytest

from headwater import errors
from headwater.base.errors import ErrorCode, KafkaError, RetriableError
from headwater.base.ids import TopicPartition
from headwater.base.setting import SettingError
from headwater.client import kafka_errors
from headwater.client.kafka_errors import class_by_code, error_for
from headwater.net.peer_errors import PeerTimeoutError, PeerUnavailableError

OWNERS = ("headwater.base.errors", "headwater.client.kafka_errors")
CODES = [code for code in ErrorCode if code is not ErrorCode.NONE]


def classes_in(module: ModuleType) -> list[type[KafkaError]]:
    found = [value for value in vars(module).values() if isinstance(value, type)]
    return [value for value in found if issubclass(value, KafkaError)]


def sample(kind: type[KafkaError]) -> KafkaError:
    """An error of that class, whatever else it wants to know."""
    if issubclass(kind, errors.LogTruncationError):
        return kind(TopicPartition("orders", 0), "Something went wrong.", 7)
    if issubclass(kind, errors.InvalidOffsetError):
        return kind(TopicPartition("orders", 0), "Something went wrong.")
    if issubclass(kind, errors.RecordDeserializationError):
        return kind(TopicPartition("orders", 0), 7, "Something went wrong.")
    if issubclass(kind, errors.CorruptBatchError):
        return kind(TopicPartition("orders", 0), 7, 9, "Something went wrong.")
    if issubclass(kind, errors.SeveralFailedError):
        return kind(ErrorCode.INVALID_CONFIG, "Something went wrong.", {"orders": None})
    return kind("Something went wrong.")


def expected_name(code: ErrorCode) -> str:
    words = code.name.removesuffix("_EXCEPTION").removesuffix("_ERROR").split("_")
    return "".join(word.capitalize() for word in words) + "Error"


@pytest.mark.parametrize("code", CODES, ids=lambda code: code.name)
def test_a_code_has_one_class_with_its_name(code: ErrorCode) -> None:
    found = class_by_code()[code]
    own = [each for each in classes_in(errors) if vars(each).get("code") is code]
    own = [each for each in own if each.__module__.startswith(OWNERS) and each is not KafkaError]
    assert own == [found]
    assert getattr(kafka_errors, found.__name__) is found
    assert found.__name__ == expected_name(code)
    assert getattr(errors, found.__name__) is found
    assert issubclass(found, RetriableError) == code.retriable == found().retriable


def test_no_code_is_left_out() -> None:
    assert set(class_by_code()) == set(CODES)


@pytest.mark.parametrize("kind", classes_in(errors), ids=lambda kind: str(kind.__name__))
@pytest.mark.parametrize("duplicate", [lambda e: pickle.loads(pickle.dumps(e)), copy.copy])
def test_an_error_survives_pickling(kind: type[KafkaError], duplicate: object) -> None:
    assert callable(duplicate)
    error = sample(kind)
    again = duplicate(error)
    assert type(again) is kind
    assert str(again) == str(error) == "Something went wrong."
    assert vars(again) == vars(error)


def test_without_a_detail_the_table_speaks() -> None:
    error = error_for(ErrorCode.PRODUCER_FENCED)
    assert isinstance(error, errors.ProducerFencedError)
    assert str(error) == ErrorCode.PRODUCER_FENCED.message


def test_a_traceback_shows_the_advice() -> None:
    error = errors.OutOfOrderSequenceNumberError("orders-0: a gap.")
    shown = "".join(traceback.format_exception(error))
    assert "orders-0: a gap." in shown
    assert "make a new one" in shown
    assert "make a new one" in error.advice


def test_only_errors_and_their_codes_are_public() -> None:
    public = {name for name in dir(errors) if name.isidentifier() and name[0] != "_"}
    assert {name for name in public if not name.endswith("Error")} == {"ErrorCode"}


def test_advice_is_in_sentences() -> None:
    for kind in classes_in(errors):
        assert not kind.advice or kind.advice.endswith("."), kind


@pytest.mark.parametrize(
    ("low", "public"),
    [
        (SettingError, errors.InvalidConfigError),
        (PeerUnavailableError, errors.NetworkError),
        (PeerTimeoutError, errors.RequestTimedOutError),
        (errors.DeadlineError, errors.RequestTimedOutError),
        (errors.UnknownTopicError, errors.UnknownTopicOrPartitionError),
        (errors.UnknownGroupError, errors.GroupIdNotFoundError),
        (errors.TopicAuthorizationFailedError, errors.AuthorizationError),
    ],
)
def test_what_lower_layers_raise_is_caught_by_the_public_class(
    low: type[KafkaError], public: type[KafkaError]
) -> None:
    assert issubclass(low, public)


@pytest.mark.parametrize("module", ["consumer.errors", "producer.errors", "spool.errors"])
def test_the_errors_of_every_part_are_public(module: str) -> None:
    for kind in classes_in(import_module(f"headwater.client.{module}")):
        if kind.__module__.endswith(module):
            assert getattr(errors, kind.__name__) is kind
