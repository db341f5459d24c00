"""A transaction manager whose requests a test answers one by one."""

from __future__ import annotations

import random

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import TopicPartition
from headwater.client.connection.coordinator_cache import CoordinatorCache
from headwater.client.connection.retry import RetryPolicy
from headwater.client.consumer.membership.membership import GroupIdentity
from headwater.client.machines.ask import Ask
from headwater.client.producer.idempotence.identity import NO_IDENTITY
from headwater.client.producer.transactions.manager import TransactionManager
from headwater.client.settings.client_config import parse_settings
from headwater.client.settings.producer_settings import PRODUCER_SETTINGS
from headwater.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from tests.support.fakes.coordinator import FakeCoordinator
from tests.support.fakes.lone_producer import api_versions
from tests.support.fakes.partition import FakePartition

PLACE = TopicPartition("orders", 0)
GROUP = GroupIdentity("readers")


class Batch:
    def __init__(self, topic_partition: TopicPartition = PLACE) -> None:
        self.topic_partition = topic_partition
        self.record_count = 1
        self.identity = NO_IDENTITY
        self.base_sequence = -1


class Conversation:
    def __init__(self, *, is_version_2: bool = True, **settings: object) -> None:
        self.coordinator = FakeCoordinator({PLACE: FakePartition()}, is_version_2=is_version_2)
        self.coordinators = CoordinatorCache()
        self.now_s = 0.0
        self.aborted_with: list[KafkaError] = []
        self.manager = TransactionManager(
            parse_settings(PRODUCER_SETTINGS, {"bootstrap.servers": "127.0.0.1:1"}, settings),
            coordinators=self.coordinators,
            policy=RetryPolicy(),
            generator=random.Random(1),
            api_versions=lambda: api_versions(is_version_2=is_version_2),
        )
        self.manager.on_abort = self.aborted_with.append

    def next_ask(self) -> Ask:
        asks = self.manager.asks(self.now_s)
        if not asks:
            wake_s = self.manager.wake_at_s(self.now_s)
            assert wake_s is not None, "nothing is asked, and nothing will be"
            self.now_s = wake_s
            asks = self.manager.asks(self.now_s)
        [ask] = asks
        return ask

    def answer(self, code: ErrorCode = ErrorCode.NONE) -> Ask:
        """Answer the next request, as the coordinator would or with an error."""
        ask = self.next_ask()
        request = ask.request
        coordinator = self.coordinator
        answer = coordinator.refusal(request, code) if code else coordinator.answer(request)
        ask.on_answer(answer, self.now_s)
        return ask

    def begin(self) -> None:
        self.manager.operations.initialize()
        self.answer()
        self.manager.operations.begin()

    def write(self, batch: Batch) -> None:
        """Have a batch sent, as a sender would."""
        self.manager.check_may_send(batch.topic_partition)
        self.manager.note_partition(batch.topic_partition)
        if not self.manager.may_drain(batch.topic_partition):
            ask = self.answer()
            assert isinstance(ask.request, AddPartitionsToTxnRequest)
        assert self.manager.may_drain(batch.topic_partition)
        self.manager.sequence(batch)
        epoch = batch.identity.epoch
        joins = self.coordinator.is_version_2
        self.coordinator.admit(batch.topic_partition, epoch, joins=joins)


def transactional(*, is_version_2: bool = True) -> Conversation:
    return Conversation(is_version_2=is_version_2, transactional_id="payments")
