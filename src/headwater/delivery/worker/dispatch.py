"""Which handler gets a record, and how it is deserialized.

Records are read as bytes: what cannot be deserialized is sent on as it came. A record that comes
back from the retry topic is handled, and deserialized, as one of the topic it was in at first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from headwater.client.consumer.deserializers import Deserializers
from headwater.client.consumer.record import ConsumerRecord
from headwater.client.failures.failed_record import origin_of
from headwater.client.failures.verdicts import DeadLetter
from headwater.delivery.worker.options import Handler

Handle = Callable[[ConsumerRecord], Any]


def make_handle(
    handlers: Mapping[str, Handler], retry_topics: Iterable[str], deserializers: Deserializers
) -> Handle:
    """What is called with every record as it was read."""
    by_topic = {
        topic: _deserializing(topic, handler, deserializers) for topic, handler in handlers.items()
    }
    if len(set(handlers.values())) == 1 and deserializers.are_none:
        # Nothing is between the worker and such a handler: that is where it is quickest.
        return next(iter(by_topic.values()))
    fallback = next(iter(by_topic.values())) if len(by_topic) == 1 else None

    def of_origin(record: ConsumerRecord) -> Any:
        topic = origin_of(record).topic
        handle = by_topic.get(topic, fallback)
        if handle is None:
            raise DeadLetter(f"This worker has no handler for the topic {topic!r}.")
        return handle(record)

    routes = {**by_topic, **dict.fromkeys(retry_topics, of_origin)}

    def route(record: ConsumerRecord) -> Any:
        return routes[record.topic](record)

    return route


def _deserializing(topic: str, handler: Handler, deserializers: Deserializers) -> Handle:
    key_of, value_of = deserializers.key_of(topic), deserializers.value_of(topic)
    if key_of is None and value_of is None:
        return handler

    def handle(record: ConsumerRecord) -> Any:
        key, value = record.key, record.value
        try:
            if key is not None and key_of is not None:
                key = key_of(key)
            if value is not None and value_of is not None:
                value = value_of(value)
        except Exception as error:
            raise DeadLetter(f"It cannot be deserialized: {error!r}") from error
        return handler(ConsumerRecord._make((*record[:5], key, value, *record[7:])))

    return handle
