"""A consumer's machines without a network and without threads: a test plays cluster and user."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from headwater.base.ids import TopicPartition
from headwater.client.connection.cluster_metadata import ClusterMetadata
from headwater.client.connection.metadata_upkeep import MetadataUpkeep
from headwater.client.connection.retry import RetryPolicy
from headwater.client.consumer.deserializers import DeserializerLike, Deserializers
from headwater.client.consumer.fetching.fetcher import Fetcher
from headwater.client.consumer.fetching.subscription_state import SubscriptionState
from headwater.client.consumer.interceptors import Interceptors
from headwater.client.consumer.metrics import ConsumerMetrics
from headwater.client.consumer.polling.failures import Failures
from headwater.client.consumer.polling.fetch_buffer import FetchBuffer
from headwater.client.consumer.polling.poll_side import PollSide
from headwater.client.consumer.positions.positions import CommittedOffsets, Positions
from headwater.client.consumer.positions.reset import EARLIEST, OffsetReset
from headwater.client.fetch.conversation import FetchLimits
from headwater.client.fetch.isolation import IsolationLevel
from headwater.client.machines.ask import Ask
from headwater.wire.messages.fetch import FetchRequest
from headwater.wire.messages.metadata import MetadataRequest
from tests.support.fakes.fetches import TOPIC


class LoneConsumer:
    """`outstanding` are the requests that were asked for and not answered yet."""

    def __init__(
        self,
        metadata: ClusterMetadata,
        *,
        default_reset: OffsetReset = EARLIEST,
        committed: CommittedOffsets | None = None,
        isolation_level: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
        value_deserializer: DeserializerLike | None = None,
    ) -> None:
        self.now_s = 100.0
        self.metadata = metadata
        self.outstanding: list[Ask] = []
        self.subscription = SubscriptionState()
        self.buffer = FetchBuffer(Deserializers(None, value_deserializer))
        self.metrics = ConsumerMetrics(self.now_s)
        failures = self.failures = Failures(lambda: None)
        generator, policy = random.Random(7), RetryPolicy()
        self.upkeep = MetadataUpkeep(
            metadata,
            max_age_s=300.0,
            policy=policy,
            generator=generator,
            allow_auto_creation=False,
        )
        self.upkeep.set_topics([TOPIC])
        self.positions = Positions(
            self.subscription,
            self.buffer,
            metadata=metadata,
            upkeep=self.upkeep,
            committed=committed,
            default_reset=default_reset,
            isolation_level=isolation_level,
            request_timeout_s=30.0,
            policy=policy,
            generator=generator,
            wall_ms=lambda: int(self.now_s * 1000),
            failures=failures,
        )
        self.upkeep.on_change(self.positions.metadata_changed)
        self.fetcher = Fetcher(
            self.subscription,
            self.buffer,
            metadata=metadata,
            upkeep=self.upkeep,
            limits=FetchLimits(),
            isolation_level=isolation_level,
            default_reset=default_reset,
            check_crc=True,
            rack="",
            preferred_lease_s=300.0,
            request_timeout_s=30.0,
            policy=policy,
            generator=generator,
            metrics=self.metrics,
            failures=failures,
            notify=lambda: None,
        )
        self.side = PollSide(
            self.subscription,
            self.buffer,
            commits=None,
            membership=None,
            failures=failures,
            interceptors=Interceptors(()),
            metrics=self.metrics,
            wake=lambda: None,
            post=lambda call: None,
            loop_time=lambda: self.now_s,
        )

    def step(self) -> None:
        """Ask the machines what to send, as the driver does."""
        for machine in (self.upkeep, self.positions, self.fetcher):
            self.outstanding += machine.asks(self.now_s)

    def asked(self, request_class: type[Any]) -> list[Ask]:
        return [ask for ask in self.outstanding if isinstance(ask.request, request_class)]

    def only(self, request_class: type[Any]) -> Any:
        """The one request of its kind that is under way."""
        (ask,) = self.asked(request_class)
        return ask.request

    def answer(self, ask: Ask, response: object) -> None:
        self.outstanding.remove(ask)
        ask.on_answer(response, self.now_s)

    def answer_all(self, request_class: type[Any], respond: Callable[[Any], object]) -> int:
        """Answer every request of a kind; how many there were."""
        asks = self.asked(request_class)
        for ask in asks:
            self.answer(ask, respond(ask.request))
        return len(asks)

    def poll(self, count: int = 500) -> list[tuple[int, int]]:
        """Partition and offset of what is handed out."""
        taken = self.side.take(count, self.now_s)
        return [(record.partition, record.offset) for record in taken]

    def seek(self, topic_partition: TopicPartition, offset: int, epoch: int = -1) -> None:
        self.buffer.drop([topic_partition])
        self.failures.forget([topic_partition])
        self.subscription.state(topic_partition).set_position(offset, epoch)

    def ignore_metadata(self) -> None:
        """Let requests for metadata wait for ever."""
        for ask in self.asked(MetadataRequest):
            self.outstanding.remove(ask)

    @property
    def fetches(self) -> list[FetchRequest]:
        return [ask.request for ask in self.outstanding if isinstance(ask.request, FetchRequest)]
