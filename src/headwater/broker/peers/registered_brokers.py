"""Whether a broker that asks the controller for something is the one that is registered.

A broker that lost its session and was registered again has another epoch. What it asked for in its
earlier life must not count: another broker may have its place by now.
"""

from __future__ import annotations

from headwater.base.errors import ErrorCode, KafkaError
from headwater.cluster.image.image import ClusterImage


def check_broker_epoch(broker_id: int, broker_epoch: int, image: ClusterImage) -> None:
    """Raise unless that is a broker's present life."""
    broker = image.brokers.get(broker_id)
    if broker is None:
        raise KafkaError(
            ErrorCode.BROKER_ID_NOT_REGISTERED, f"Broker {broker_id} is not registered."
        )
    if broker.broker_epoch != broker_epoch:
        raise KafkaError(
            ErrorCode.STALE_BROKER_EPOCH,
            f"Broker {broker_id} has epoch {broker.broker_epoch}, not {broker_epoch}.",
        )
