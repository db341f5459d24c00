"""Records for the built-in pipelines to read: a web shop's morning, in topics of its own.

It is the stream of the demo, sent as fast as it goes: some orders come late or twice, some records
are malformed, so that each pipeline has something to show.
"""

from __future__ import annotations

from collections import Counter
from typing import Final, NamedTuple

from headwater.base.errors import ErrorCode, InvalidConfigError
from headwater.client.admin import Admin, NewTopic
from headwater.client.producer.producer import Producer
from headwater.pipeline.demo.shop import ORDERS, PAYMENTS, Kind, make_stream

PREFIX: Final = "shop-"
ORDER_COUNT: Final = 1000
_SEED: Final = 7
_PARTITION_COUNT: Final = 2


class Sample(NamedTuple):
    """What was sent, and to which topics."""

    orders_topic: str
    payments_topic: str
    orders_count: int
    payments_count: int
    malformed_count: int


def send_sample(
    bootstrap_servers: str, *, prefix: str = PREFIX, order_count: int = ORDER_COUNT
) -> Sample:
    """Make the topics and fill them; they must not be there, as orders would come twice."""
    topics = {name: f"{prefix}{name}" for name in (ORDERS, PAYMENTS)}
    _create(bootstrap_servers, list(topics.values()))
    records = list(make_stream(_SEED, order_count).records)
    with Producer(bootstrap_servers=bootstrap_servers) as producer:
        sent = [producer.send(topics[each.topic], each.value, each.key) for each in records]
        producer.flush()
        for each in sent:
            each.result()
    counts = Counter(each.topic for each in records)
    return Sample(
        topics[ORDERS],
        topics[PAYMENTS],
        counts[ORDERS],
        counts[PAYMENTS],
        sum(each.kind is Kind.REJECT for each in records),
    )


def _create(bootstrap_servers: str, names: list[str]) -> None:
    """Both topics, or none if one of them is there."""
    topics = [NewTopic(name, _PARTITION_COUNT) for name in names]
    with Admin(bootstrap_servers=bootstrap_servers) as admin:
        outcomes = admin.create_topics(topics, validate_only=True, raise_errors=False)
        for name, outcome in outcomes.items():
            if getattr(outcome, "code", None) is ErrorCode.TOPIC_ALREADY_EXISTS:
                raise InvalidConfigError(
                    f"The topic {name!r} is there already; --prefix gives the topics other names."
                )
        admin.create_topics(topics)
