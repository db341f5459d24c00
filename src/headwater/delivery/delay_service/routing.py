"""What is written for a record whose time has come, and what if it cannot be."""

from __future__ import annotations

from typing import Protocol

from headwater.base.errors import KafkaError
from headwater.client.consumer.record import ConsumerRecord
from headwater.client.producer.async_producer import AsyncProducer
from headwater.delivery.delay_service.delay_queue import Waiting
from headwater.delivery.delay_service.destination import (
    Letter,
    dead_letter,
    delivery,
    destination_of,
)
from headwater.delivery.delay_service.known_topics import KnownTopics


class Routing(Protocol):
    async def letter(self, waiting: Waiting, producer: AsyncProducer) -> Letter:
        """What is written; raises `UndeliverableError` with the reason for a dead letter."""
        ...

    def dead(self, record: ConsumerRecord, reason: str, now_ms: int) -> Letter:
        """What is written of a record that cannot be forwarded."""
        ...

    def bare(self, letter: Letter) -> Letter:
        """What is left of a dead letter that was refused whole."""
        ...

    def forbidden(self, topic: str, error: KafkaError) -> None:
        """The service may not write there; raises the error if nothing can be done about it."""
        ...

    def forget(self) -> None:
        """Something went wrong: what was found out about topics may not hold any more."""
        ...


class HeaderRouting:
    """Of levels: the record's own headers say where it is to go."""

    def __init__(self, topics: KnownTopics) -> None:
        self._topics = topics

    async def letter(self, waiting: Waiting, producer: AsyncProducer) -> Letter:
        to = destination_of(waiting.record)
        await self._topics.check(to, producer)
        return delivery(waiting.record, to, waiting.due_ms)

    def dead(self, record: ConsumerRecord, reason: str, now_ms: int) -> Letter:
        return dead_letter(record, reason, now_ms)

    def bare(self, letter: Letter) -> Letter:
        """Its place remains, where it can be read until retention takes it."""
        return letter._replace(key=None, value=None, headers=letter.headers[-2:])

    def forbidden(self, topic: str, error: KafkaError) -> None:
        self._topics.refuse(topic, str(error))

    def forget(self) -> None:
        self._topics.forget()
