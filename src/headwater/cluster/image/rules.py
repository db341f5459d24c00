"""What an image of the cluster may say, wherever it was read.

A broker makes directories that are named after topics, deletes those of topics that are gone, and
dials the addresses of brokers. So what it hears from a peer (`reception`) or finds in the
metadata store (`loader`) is checked before anything follows from it. Both go by these rules:
what a controller takes from the store, every broker must take from the controller.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import Final

from headwater.base.errors import InvalidTopicError
from headwater.base.ids import ZERO_TOPIC_ID, validate_topic_name
from headwater.cluster.image.image import (
    NO_CONFIGS,
    NO_LEADER,
    BrokerInfo,
    ConfigImage,
    ConfigResource,
    PartitionImage,
    ResourceKind,
)

#: Ids, epochs and versions are 32 bits wide in Kafka's protocol.
NUMBER_MAX: Final = 2**31 - 1
_PORT_MAX: Final = 65_535
_THROTTLE_MAX: Final = 2**63 - 1
#: The longest name that DNS knows.
_HOST_LENGTH_MAX: Final = 255


class ImageFaultError(ValueError):
    """Something cannot be so in any cluster; the message is one sentence."""


def check_number(what: str, number: object, lowest: int = 0, highest: int = NUMBER_MAX) -> None:
    """Refuse what is no whole number from `lowest` to `highest`."""
    if type(number) is not int or not lowest <= number <= highest:
        raise ImageFaultError(f"{what} cannot be {_shown(number)}.")


def check_text(what: str, text: object) -> None:
    """Refuse what is no text, or text that no message can carry."""
    if not isinstance(text, str):
        raise ImageFaultError(f"{what} is no text.")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ImageFaultError(f"{what} is no text that can be sent.") from None


def check_topic_name(name: str) -> None:
    try:
        validate_topic_name(name)
    except InvalidTopicError as error:
        raise ImageFaultError(str(error)) from None


def check_topic_id(topic_id: uuid.UUID) -> None:
    if topic_id == ZERO_TOPIC_ID:
        raise ImageFaultError("The id of a topic cannot be zero.")


def check_replicas(replicas: tuple[int, ...]) -> None:
    """Those that a partition is assigned to."""
    if not replicas:
        raise ImageFaultError("A partition has no replicas.")
    for broker_id in replicas:
        check_number("The id of a replica", broker_id)
    check_distinct("The replica", replicas)


def check_partition(partition: PartitionImage) -> None:
    """A partition that has a state."""
    check_replicas(partition.replicas)
    if not partition.isr:
        raise ImageFaultError("No replica of a partition is in sync.")
    check_distinct("The member of an ISR", partition.isr)
    strangers = set(partition.isr).difference(partition.replicas)
    if strangers:
        raise ImageFaultError(f"The ISR has {_shown(min(strangers))}, which is no replica.")
    check_number("The leader of a partition", partition.leader, NO_LEADER)
    if partition.leader != NO_LEADER and partition.leader not in partition.replicas:
        raise ImageFaultError(f"The leader {partition.leader} is no replica.")
    if partition.is_moving:
        check_move(partition.replicas, partition.adding, partition.removing)
    check_throttle(partition.throttle)
    check_number("A leader epoch", partition.leader_epoch)
    check_number("A partition epoch", partition.partition_epoch)


def check_move(
    replicas: tuple[int, ...], adding: tuple[int, ...], removing: tuple[int, ...]
) -> None:
    """What a partition that moves to other brokers gets and gives up."""
    for what, members in (("added", adding), ("removed", removing)):
        check_distinct(f"The {what} replica", members)
        strangers = set(members).difference(replicas)
        if strangers:
            raise ImageFaultError(f"{_shown(min(strangers))} is {what}, but is no replica.")
        if len(members) == len(replicas):
            raise ImageFaultError(f"All replicas of a partition are {what}.")


def check_throttle(rate: object) -> None:
    """What a broker may send or receive for a partition that moves; 0 without a limit."""
    check_number("A throttle", rate, 0, _THROTTLE_MAX)


def check_broker(broker: BrokerInfo) -> None:
    check_number("The id of a broker", broker.broker_id)
    if broker.rack is not None:
        check_text("A broker's rack", broker.rack)
    for path in (*broker.log_dirs, *broker.cordoned_log_dirs):
        check_text("A broker's log directory", path)
    for endpoint in broker.endpoints:
        check_text("The name of a listener", endpoint.listener_name)
        check_text("A broker's host", endpoint.host)
        # An empty one stands for wherever the client reached the broker.
        if len(endpoint.host) > _HOST_LENGTH_MAX or not endpoint.host.isprintable():
            raise ImageFaultError(f"A broker's host cannot be {_shown(endpoint.host)}.")
        check_number("A broker's port", endpoint.port, 0, _PORT_MAX)


def check_resource(resource: ConfigResource) -> None:
    """A topic, a broker by its number in plain digits, or all brokers; what else has any name."""
    if resource.kind is ResourceKind.TOPIC:
        check_topic_name(resource.name)
    elif resource.kind is ResourceKind.BROKER:
        if resource.name:
            broker_id_from_text(resource.name)
    else:
        check_text("The name of what has settings", resource.name)
        if not resource.name:
            raise ImageFaultError("What has settings needs a name.")


def check_config(config: ConfigImage) -> None:
    for name, value in config.configs.items():
        check_text("The name of a setting", name)
        check_text("The value of a setting", value)
    check_number("The version of settings", config.version, NO_CONFIGS)


def broker_id_from_text(text: str) -> int:
    """The id that is written so, and only so: `7`, not `07`."""
    digits = text[:10]
    if digits == text and text.isascii() and text.isdecimal() and str(int(text)) == text:
        check_number("The id of a broker", int(text))
        return int(text)
    raise ImageFaultError(f"{_shown(text)} is no broker id, which is a whole number.")


def check_distinct(what: str, values: Iterable[object]) -> None:
    """Refuse what is named twice."""
    seen: set[object] = set()
    for value in values:
        if value in seen:
            raise ImageFaultError(f"{what} {_shown(value)} is named more than once.")
        seen.add(value)


def _shown(value: object) -> str:
    """As much of it as a sentence can bear."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}..."
