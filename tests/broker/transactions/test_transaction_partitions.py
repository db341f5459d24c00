"""Asking a transaction's coordinator about partitions."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any, cast

import pytest

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import TopicPartition
from headwater.broker.context import BrokerContext
from headwater.broker.produce.transaction import as_producer_error
from headwater.broker.topics.coordinator_topics import TRANSACTIONS_TOPIC
from headwater.broker.transactions.partitions import TransactionPartitions, Verdicts
from headwater.cluster.image.image import ClusterImage
from headwater.cluster.image.layered_map import LayeredMap
from headwater.coordinator.key_hash import partition_for
from headwater.coordinator.outcome import ProducerIdentity
from headwater.net.peer_errors import PeerTimeoutError, PeerUnavailableError
from headwater.sim.virtual_loop import VirtualLoop
from headwater.storage.producers.state import ProducerStates
from headwater.storage.producers.transaction_verification import Question, TransactionalBatch
from headwater.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
)
from tests.support.worlds.marker_world import topic_image

_A0, _A1, _B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)
_PRODUCER = ProducerIdentity(7, 2)

Answer = Callable[[AddPartitionsToTxnRequest], AddPartitionsToTxnResponse]


class _Cluster:
    """Stands for the broker's context, its settings and its channels."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.asked: list[tuple[int, AddPartitionsToTxnRequest]] = []
        self.settings = self
        self.channels = self
        #: Partition n of the transactions' topic is led by broker 100 + n.
        self.image = ClusterImage(
            topics=LayeredMap(
                {TRANSACTIONS_TOPIC: topic_image(TRANSACTIONS_TOPIC, range(100, 150))}
            )
        )

    def loop_time(self) -> float:
        return asyncio.get_running_loop().time()

    def integer(self, name: str) -> int:
        return {
            "request.timeout.ms": 30_000,
            "add.partitions.to.txn.retry.backoff.ms": 20,
            "add.partitions.to.txn.retry.backoff.max.ms": 100,
        }[name]

    async def send(self, broker_id: int, request: Any, timeout_s: float) -> Any:
        assert timeout_s == 30
        self.asked.append((broker_id, request))
        return self.answer(request)


def _ensure(cluster: _Cluster, *, add: bool, questions: Sequence[Question] = ()) -> Verdicts:
    async def run() -> Verdicts:
        return await TransactionPartitions(cast(BrokerContext, cluster)).ensure(
            "pay", _PRODUCER, [_A0, _B0, _A1], add=add, questions=questions
        )

    loop = VirtualLoop(Random(0))
    try:
        return loop.run_until_complete(run())
    finally:
        loop.close()


def _codes(verdicts: Verdicts) -> dict[TopicPartition, ErrorCode | None]:
    return {each: None if error is None else error.code for each, error in verdicts.items()}


def _saying(codes: Mapping[TopicPartition, ErrorCode]) -> Answer:
    def answer(request: AddPartitionsToTxnRequest) -> AddPartitionsToTxnResponse:
        (transaction,) = request.transactions
        return AddPartitionsToTxnResponse(
            results_by_transaction=[
                AddPartitionsToTxnResult(
                    transactional_id=transaction.transactional_id,
                    topic_results=[
                        AddPartitionsToTxnTopicResult(
                            name=topic.name,
                            results_by_partition=[
                                AddPartitionsToTxnPartitionResult(
                                    partition_index=number,
                                    partition_error_code=codes.get(
                                        TopicPartition(topic.name, number), ErrorCode.NONE
                                    ),
                                )
                                for number in topic.partitions
                            ],
                        )
                        for topic in transaction.topics
                    ],
                )
            ]
        )

    return answer


@pytest.mark.parametrize("add", [False, True])
def test_the_leader_of_the_ids_partition_is_asked_once_for_all(add: bool) -> None:
    cluster = _Cluster(_saying({}))
    assert _codes(_ensure(cluster, add=add)) == {_A0: None, _A1: None, _B0: None}
    ((broker, request),) = cluster.asked
    assert broker == 100 + partition_for("pay", 50)
    (transaction,) = request.transactions
    assert transaction.transactional_id == "pay"
    assert (transaction.producer_id, transaction.producer_epoch) == _PRODUCER
    assert transaction.verify_only is not add
    assert [(topic.name, topic.partitions) for topic in transaction.topics] == [
        ("a", [0, 1]),
        ("b", [0]),
    ]


def test_each_partition_has_its_own_verdict() -> None:
    codes = {_A1: ErrorCode.TRANSACTION_ABORTABLE, _B0: ErrorCode.PRODUCER_FENCED}
    assert _codes(_ensure(_Cluster(_saying(codes)), add=False)) == {
        _A0: None,
        _A1: ErrorCode.TRANSACTION_ABORTABLE,
        _B0: ErrorCode.INVALID_PRODUCER_EPOCH,
    }


def test_what_is_wrong_with_the_request_is_wrong_with_all_partitions() -> None:
    for code, expected in (
        (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, ErrorCode.INVALID_TXN_STATE),
        (ErrorCode.NOT_COORDINATOR, ErrorCode.NOT_COORDINATOR),
    ):
        response = AddPartitionsToTxnResponse(error_code=code)
        cluster = _Cluster(lambda _, response=response: response)  # type: ignore[misc]
        assert set(_codes(_ensure(cluster, add=True)).values()) == {expected}


@pytest.mark.parametrize(
    "error", [PeerUnavailableError("It is gone."), PeerTimeoutError("It is late.")]
)
def test_a_coordinator_out_of_reach_is_a_network_error(error: KafkaError) -> None:
    def fail(_: object) -> AddPartitionsToTxnResponse:
        raise error

    verdicts = _ensure(_Cluster(fail), add=False)
    assert set(_codes(verdicts).values()) == {ErrorCode.NETWORK_EXCEPTION}


@pytest.mark.parametrize("leaders", [None, [-1]])
def test_without_a_coordinator_nobody_is_asked(leaders: list[int] | None) -> None:
    cluster = _Cluster(_saying({}))
    topics = {} if leaders is None else {TRANSACTIONS_TOPIC: topic_image("t", leaders)}
    cluster.image = ClusterImage(topics=LayeredMap(topics))
    verdicts = _ensure(cluster, add=True)
    assert set(_codes(verdicts).values()) == {ErrorCode.COORDINATOR_NOT_AVAILABLE}
    assert cluster.asked == []


def test_a_partition_that_the_answer_lacks_is_not_part_of_the_transaction() -> None:
    verdicts = _ensure(_Cluster(lambda _: AddPartitionsToTxnResponse()), add=False)
    assert set(_codes(verdicts).values()) == {ErrorCode.UNKNOWN_SERVER_ERROR}


def test_a_transaction_that_is_being_completed_is_waited_for_when_adding() -> None:
    answers = [_saying({_A0: ErrorCode.CONCURRENT_TRANSACTIONS})] * 3 + [_saying({})]
    cluster = _Cluster(lambda request: answers.pop(0)(request))
    assert _codes(_ensure(cluster, add=True))[_A0] is None
    assert len(cluster.asked) == 4


@pytest.mark.parametrize(("add", "asked"), [(True, range(6, 14)), (False, range(1, 2))])
def test_but_not_for_ever_and_not_when_verifying(add: bool, asked: range) -> None:
    cluster = _Cluster(_saying({_A0: ErrorCode.CONCURRENT_TRANSACTIONS}))
    assert _codes(_ensure(cluster, add=add))[_A0] is ErrorCode.CONCURRENT_TRANSACTIONS
    assert len(cluster.asked) in asked


@pytest.mark.parametrize(
    ("end_count", "asked", "is_void"), [(0, 1, False), (1, 2, False), (1000, 4, True)]
)
def test_an_answer_that_came_with_the_end_of_the_last_transaction_is_asked_for_again(
    end_count: int, asked: int, is_void: bool
) -> None:
    states = ProducerStates(_A0)
    batch = TransactionalBatch(*_PRODUCER, 0)
    question = Question(states, batch, states.verifications.begin(batch, 0))
    ends = [_PRODUCER.producer_id] * end_count

    def answer(request: AddPartitionsToTxnRequest) -> AddPartitionsToTxnResponse:
        if ends:
            states.verifications.forget([ends.pop()])
        return _saying({})(request)

    cluster = _Cluster(answer)
    _ensure(cluster, add=True, questions=[question])
    assert len(cluster.asked) == asked
    assert question.is_void is is_void


@pytest.mark.parametrize(
    ("code", "version", "told"),
    [
        (ErrorCode.NETWORK_EXCEPTION, 12, ErrorCode.NOT_ENOUGH_REPLICAS),
        (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, 9, ErrorCode.NOT_ENOUGH_REPLICAS),
        (ErrorCode.COORDINATOR_NOT_AVAILABLE, 12, ErrorCode.NOT_ENOUGH_REPLICAS),
        (ErrorCode.NOT_COORDINATOR, 11, ErrorCode.NOT_ENOUGH_REPLICAS),
        (ErrorCode.CONCURRENT_TRANSACTIONS, 11, ErrorCode.NOT_ENOUGH_REPLICAS),
        (ErrorCode.CONCURRENT_TRANSACTIONS, 12, ErrorCode.CONCURRENT_TRANSACTIONS),
        (ErrorCode.TRANSACTION_ABORTABLE, 10, ErrorCode.INVALID_TXN_STATE),
        (ErrorCode.TRANSACTION_ABORTABLE, 11, ErrorCode.TRANSACTION_ABORTABLE),
        (ErrorCode.INVALID_PRODUCER_EPOCH, 12, ErrorCode.INVALID_PRODUCER_EPOCH),
        (ErrorCode.INVALID_PRODUCER_ID_MAPPING, 9, ErrorCode.INVALID_PRODUCER_ID_MAPPING),
    ],
)
def test_producers_are_told_what_they_understand(
    code: ErrorCode, version: int, told: ErrorCode
) -> None:
    assert as_producer_error(KafkaError(code), version).code is told
