"""Where a shipper hands its records over: a producer, and what is done when that cannot go on.

A producer that has met an error which no retry helps against is closed and replaced. After any
trouble there is a pause, which grows while the trouble lasts.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from random import Random

from headwater.base.clocks import Clock
from headwater.base.errors import KafkaError
from headwater.client.connection.retry import RetryPolicy
from headwater.client.spool.shipping.missing_topics import MissingTopics
from headwater.client.spool.shipping.producer import ShippingProducer, Trouble, trouble_of
from headwater.client.spool.shipping.shipment import Shipment

_logger = logging.getLogger(__name__)


class Outbox:
    """Belongs to the shipper's thread; `open` may be called before that is started."""

    def __init__(
        self,
        make_producer: Callable[[], ShippingProducer],
        missing_topics: MissingTopics,
        policy: RetryPolicy,
        generator: Random,
        clock: Clock,
    ) -> None:
        #: Nothing is sent before this moment.
        self.resume_ms = 0.0
        self._make_producer = make_producer
        self._missing_topics = missing_topics
        self._policy = policy
        self._generator = generator
        self._clock = clock
        self._producer: ShippingProducer | None = None
        self._attempt_count = 0

    def open(self) -> ShippingProducer:
        self._producer = self._make_producer()
        return self._producer

    def close(self) -> None:
        """What is not answered by now fails."""
        producer, self._producer = self._producer, None
        if producer is not None:
            producer.close(0)

    def metrics(self) -> dict[str, float]:
        producer = self._producer
        return {} if producer is None else producer.metrics()

    def send(self, shipment: Shipment, *, alone: bool) -> bool:
        """Whether the record is under way now, or has failed at once; if not, try again later."""
        record = shipment.record
        now_ms = self._clock.monotonic_ms()
        try:
            self._missing_topics.check(record.topic, now_ms)
            producer = self._producer or self.open()
            delivery = producer.send(
                record.topic,
                record.value,
                record.key,
                partition=record.partition,
                headers=record.headers,
                timestamp_ms=record.timestamp_ms,
            )
        except KafkaError as error:
            return self._was_not_taken(shipment, error, now_ms)
        self._missing_topics.found(record.topic)
        self._attempt_count = 0
        shipment.sent(delivery, alone=alone)
        return True

    def _was_not_taken(self, shipment: Shipment, error: KafkaError, now_ms: float) -> bool:
        trouble = trouble_of(error)
        if trouble is Trouble.TOPIC_MISSING:
            # Long enough for a topic that is being created; then it does not hold up the others.
            if self._missing_topics.is_given_up(shipment.record.topic, now_ms):
                shipment.refused_by_client(error)
                return True
        elif trouble is Trouble.REFUSED:
            shipment.refused_by_client(error)
            return True
        elif trouble is Trouble.PRODUCER_SPENT:
            self.replace_producer(error)
            return False
        self.pause()
        return False

    def give_up_topic_if_gone(self, topic: str) -> None:
        """Records of a topic that was deleted would be tried again and again: let go of them.

        The producer is replaced, and what it had under way is sent again, except for that topic.
        """
        producer = self._producer
        if producer is None:
            return
        try:
            producer.partitions_for(topic)
        except KafkaError as error:
            if trouble_of(error) is Trouble.TOPIC_MISSING:
                self._missing_topics.give_up(topic, self._clock.monotonic_ms())
                self.replace_producer(error)

    def replace_producer(self, error: KafkaError) -> None:
        _logger.warning("Shipping goes on with a new producer after: %s", error)
        self.close()
        self.pause()

    def pause(self) -> None:
        self._attempt_count += 1
        pause_s = self._policy.pause_s(self._attempt_count, self._generator)
        self.resume_ms = self._clock.monotonic_ms() + pause_s * 1000
