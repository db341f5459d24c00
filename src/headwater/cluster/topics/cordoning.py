"""Which brokers get new replicas: all that are alive but those whose directories are all cordoned.

A broker tells in its registration which directories it has, and which of them it was started with
as cordoned. What is set for it while it runs takes the place of the latter, and the controller has
that in its image before anybody else. What replicas a broker has it keeps in either case.
"""

from __future__ import annotations

from typing import Final

from headwater.base.errors import ErrorCode, KafkaError
from headwater.cluster.image.image import BrokerInfo, ClusterImage

CORDONED_SETTING: Final = "cordoned.log.dirs"
_ALL: Final = "*"


def open_racks(image: ClusterImage, replication_factor: int) -> dict[int, str | None]:
    """The brokers that new replicas may go to, with their racks.

    INVALID_REPLICATION_FACTOR if they are too few.
    """
    racks = {
        broker.broker_id: broker.rack
        for broker in image.brokers.values()
        if not is_cordoned(broker, image)
    }
    if replication_factor > len(racks):
        cordoned_count = len(image.brokers) - len(racks)
        exception = f" without those {cordoned_count} that are cordoned" if cordoned_count else ""
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"The replication factor {replication_factor} is larger than the number of "
            f"brokers{exception}, which is {len(racks)}.",
        )
    return racks


def is_cordoned(broker: BrokerInfo, image: ClusterImage) -> bool:
    """Whether no directory of the broker takes new logs."""
    text = image.broker_configs(broker.broker_id).get(CORDONED_SETTING)
    if text is None:
        cordoned = frozenset(broker.cordoned_log_dirs)
    else:
        cordoned = frozenset(item.strip() for item in text.split(","))
    return _ALL in cordoned or (bool(broker.log_dirs) and cordoned.issuperset(broker.log_dirs))
