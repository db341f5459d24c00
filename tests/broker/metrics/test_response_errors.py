"""The error codes in an answer, wherever its message has them."""

from collections.abc import Iterator

import pytest

from headwater.base.errors import ErrorCode
from headwater.broker.handlers.cards.all_cards import CARDS
from headwater.broker.metrics.response_errors import error_codes
from headwater.wire.api_keys import ApiKey, response_class
from headwater.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
)
from headwater.wire.messages.heartbeat import HeartbeatResponse
from headwater.wire.messages.metadata import (
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from headwater.wire.messages.offset_fetch import OffsetFetchResponse
from headwater.wire.schema import Struct


def test_of_the_answer_itself() -> None:
    assert error_codes(HeartbeatResponse()) == []
    response = HeartbeatResponse(error_code=ErrorCode.ILLEGAL_GENERATION)
    assert error_codes(response) == [ErrorCode.ILLEGAL_GENERATION]


def test_of_all_things_in_it_but_those_that_went_well() -> None:
    response = MetadataResponse(
        topics=[
            MetadataResponseTopic(error_code=3),
            MetadataResponseTopic(
                partitions=[MetadataResponsePartition(error_code=code) for code in (0, 5, 5, 0, 9)]
            ),
        ],
        error_code=42,
    )
    assert sorted(error_codes(response)) == [3, 5, 5, 9, 42]


def test_under_another_name_and_deep_down() -> None:
    partition = AddPartitionsToTxnPartitionResult(partition_error_code=48)
    topic = AddPartitionsToTxnTopicResult(results_by_partition=[partition] * 2)
    transaction = AddPartitionsToTxnResult(topic_results=[topic])
    response = AddPartitionsToTxnResponse(results_by_transaction=[transaction])
    assert error_codes(response) == [48, 48]


def test_where_a_list_is_null() -> None:
    response = OffsetFetchResponse(error_code=16)
    response.topics = None  # type: ignore[assignment]
    assert error_codes(response) == [16]


@pytest.mark.parametrize("api_key", CARDS)
def test_an_answer_is_no_error_by_default_and_has_codes_in_lists_alone(api_key: ApiKey) -> None:
    response = response_class(api_key)
    assert error_codes(response()) == []
    assert not any(map(_has_codes, _parts(response)))


def _parts(struct: type[Struct]) -> Iterator[type[Struct]]:
    """The structs in a struct that are not in a list, at any depth."""
    for field in struct.FIELDS:
        if not isinstance(field.kind, str):
            if not field.array:
                yield field.kind
            yield from _parts(field.kind)


def _has_codes(struct: type[Struct]) -> bool:
    return any(
        field.name.endswith("error_code")
        or (not isinstance(field.kind, str) and _has_codes(field.kind))
        for field in struct.FIELDS
    )
