"""How what was made of a failed record is given to a producer, of either kind."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar

from headwater.client.producer.record import HeadersLike, ProducerRecord

T_co = TypeVar("T_co", covariant=True)
T = TypeVar("T")


class CanSend(Protocol[T_co]):
    """`Producer`, which returns a future, and `AsyncProducer`, whose call is to be awaited."""

    def send(
        self, topic: str, value: Any = None, key: Any = None, *, headers: HeadersLike | None = ()
    ) -> T_co: ...


def send_on(record: ProducerRecord, producer: CanSend[T]) -> T:
    return producer.send(record.topic, record.value, record.key, headers=record.headers)
