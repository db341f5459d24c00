"""The bit fields of authorized operations, against what Apache Kafka 4.1 answers."""

from headwater.broker.access.authorized_operations import (
    CLUSTER_OPERATIONS,
    TOPIC_OPERATIONS,
    bit_field,
)
from headwater.broker.access.operations import Operation


def test_without_an_authorizer_everything_is_allowed_as_in_kafka() -> None:
    assert TOPIC_OPERATIONS == 3576
    assert CLUSTER_OPERATIONS == 8096


def test_a_bit_is_set_once() -> None:
    assert bit_field() == 0
    assert bit_field(Operation.READ, Operation.READ) == 8
