"""What the nodes of the metadata store hold: the JSON documents that Kafka keeps in ZooKeeper.

Each kind of document has a function to write it and one to read it. A document that cannot be read,
or that says what cannot be (`image.rules`), raises `CorruptNodeError`, with the path. Whoever reads
many nodes leaves that one out; what a cluster cannot be without stops the start of a broker, rather
than have it guess.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from headwater.base.ids import topic_id_from_text, topic_id_to_text
from headwater.cluster.image.image import NO_CONTROLLER, PartitionImage
from headwater.cluster.image.rules import (
    ImageFaultError,
    check_move,
    check_number,
    check_replicas,
    check_text,
    check_throttle,
    check_topic_id,
)


class CorruptNodeError(Exception):
    """A node of the metadata store does not hold what it should; the message is one sentence."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(path, reason)
        self.path = path
        self.reason = reason

    def __str__(self) -> str:
        return f"The node {self.path} of the metadata store cannot be read: {self.reason}."


#: The brokers that hold each partition; the index is the partition.
Assignments = tuple[tuple[int, ...], ...]

# How the document of a topic begins, and where it goes on behind the topic's id.
_TOPIC_HEAD: Final = b'{"version":3,"topic_id":"'
_TOPIC_TAIL: Final = len(_TOPIC_HEAD) + 22

_PRODUCER_ID_MAX: Final = 2**63 - 1
#: What reading a document of any shape may raise. Lists within lists without an end are among it.
UNREADABLE: Final = (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError)


class TopicDocument(NamedTuple):
    """`/brokers/topics/<topic>`: the topic's id, and which brokers hold each partition."""

    topic_id: uuid.UUID
    replicas: Assignments
    #: Of partitions that move, by their numbers: see `PartitionImage`.
    adding: Mapping[int, tuple[int, ...]] = MappingProxyType({})
    removing: Mapping[int, tuple[int, ...]] = MappingProxyType({})
    throttles: Mapping[int, int] = MappingProxyType({})

    @classmethod
    def of(cls, topic_id: uuid.UUID, partitions: Iterable[PartitionImage]) -> TopicDocument:
        """That of a topic which has these partitions."""
        every = tuple(partitions)
        return cls(
            topic_id,
            tuple(each.replicas for each in every),
            {number: each.adding for number, each in enumerate(every) if each.adding},
            {number: each.removing for number, each in enumerate(every) if each.removing},
            {number: each.throttle for number, each in enumerate(every) if each.throttle},
        )


class PartitionState(NamedTuple):
    """`/brokers/topics/<topic>/partitions/<n>/state`: who leads, and who is in sync."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    controller_epoch: int


class ProducerIdBlock(NamedTuple):
    """`/latest_producer_id_block`: the last block given out, both ends included, and to whom."""

    broker_id: int
    first: int
    last: int


def encode_topic(document: TopicDocument) -> bytes:
    partitions = {str(index): list(each) for index, each in enumerate(document.replicas)}
    fields = {
        "version": 3,
        "topic_id": topic_id_to_text(document.topic_id),
        "partitions": partitions,
        "adding_replicas": _by_text(document.adding),
        "removing_replicas": _by_text(document.removing),
    }
    if document.throttles:
        # Kafka's documents do not have it, and whoever does not know it passes over it.
        fields["throttles"] = {str(each): rate for each, rate in sorted(document.throttles.items())}
    return encode(fields)


def decode_topic(
    path: str, data: bytes, known: dict[bytes, TopicDocument] | None = None
) -> TopicDocument:
    """The document of a topic.

    Those of one cluster often differ in the id alone. Whoever reads many of them passes a dict to
    all calls, and what stands behind the id is then read once for all documents where it is equal.
    """
    try:
        head, tail = data[:_TOPIC_TAIL], data[_TOPIC_TAIL:]
        alike = known.get(tail) if known and head.startswith(_TOPIC_HEAD) else None
        if alike is not None:
            return alike._replace(topic_id=_topic_id(head[len(_TOPIC_HEAD) :].decode()))
        document = json.loads(data.decode())
        partitions = document["partitions"]
        if not partitions:
            raise ImageFaultError("it has no partitions")
        # The numbers must be 0, 1, 2, ..., whatever the order in which they are written.
        replicas = tuple(tuple(partitions[str(index)]) for index in range(len(partitions)))
        for brokers in dict.fromkeys(replicas):
            check_replicas(brokers)
        adding = _by_number(document.get("adding_replicas"), len(replicas))
        removing = _by_number(document.get("removing_replicas"), len(replicas))
        for number in sorted({*adding, *removing}):
            check_move(replicas[number], adding.get(number, ()), removing.get(number, ()))
        throttles = _throttles(document.get("throttles"))
        topic_id = _topic_id(document["topic_id"])
    except UNREADABLE as error:
        raise corrupt(path, error) from error
    read = TopicDocument(topic_id, replicas, adding, removing, throttles)
    if known is not None and head.startswith(_TOPIC_HEAD):
        known[tail] = read
    return read


def _by_text(moves: Mapping[int, tuple[int, ...]]) -> dict[str, list[int]]:
    return {str(number): list(brokers) for number, brokers in sorted(moves.items())}


def _by_number(
    moves: Mapping[str, list[int]] | None, partition_count: int
) -> dict[int, tuple[int, ...]]:
    """What a document says of moves; the earliest ones say nothing of them."""
    read: dict[int, tuple[int, ...]] = {}
    for text, brokers in (moves or {}).items():
        number = int(text)
        if str(number) != text or not 0 <= number < partition_count:
            raise ImageFaultError(f"there is no partition {text!r}")
        for broker_id in brokers:
            check_number("The id of a replica", broker_id)
        if brokers:
            read[number] = tuple(brokers)
    return read


def _throttles(rates: Mapping[str, int] | None) -> dict[int, int]:
    """What a document says of them; most say nothing, and Kafka's never do."""
    read = {int(text): rate for text, rate in (rates or {}).items()}
    for rate in read.values():
        check_throttle(rate)
    return read


def encode_partition_state(state: PartitionState) -> bytes:
    return encode(
        {
            "controller_epoch": state.controller_epoch,
            "leader": state.leader,
            "version": 1,
            "leader_epoch": state.leader_epoch,
            "isr": list(state.isr),
        }
    )


def decode_partition_state(path: str, data: bytes) -> PartitionState:
    try:
        document = json.loads(data)
        isr = tuple(document["isr"])
        controller_epoch = document["controller_epoch"]
        check_number("A controller epoch", controller_epoch)
        # What the rest may be is known to whoever knows the replicas.
        return PartitionState(document["leader"], document["leader_epoch"], isr, controller_epoch)
    except UNREADABLE as error:
        raise corrupt(path, error) from error


def encode_configs(configs: Mapping[str, str]) -> bytes:
    return encode({"version": 1, "config": dict(sorted(configs.items()))})


def decode_configs(path: str, data: bytes) -> dict[str, str]:
    try:
        configs = dict(json.loads(data)["config"].items())
        for name, value in configs.items():
            check_text("the name of a setting", name)
            check_text(f"the value of {name}", value)
        return configs
    except UNREADABLE as error:
        raise corrupt(path, error) from error


def encode_producer_id_block(block: ProducerIdBlock) -> bytes:
    return encode(
        {
            "version": 1,
            "broker": block.broker_id,
            "block_start": str(block.first),
            "block_end": str(block.last),
        }
    )


def decode_producer_id_block(path: str, data: bytes) -> ProducerIdBlock:
    try:
        document = json.loads(data)
        first, last = int(document["block_start"]), int(document["block_end"])
        check_number("the end of a block", last, 0, _PRODUCER_ID_MAX)
        return ProducerIdBlock(int(document["broker"]), first, last)
    except UNREADABLE as error:
        raise corrupt(path, error) from error


def encode_cluster_id(cluster_id: str) -> bytes:
    return encode({"version": "1", "id": cluster_id})


def decode_cluster_id(path: str, data: bytes) -> str:
    try:
        cluster_id = str(json.loads(data)["id"])
        check_text("the id", cluster_id)
        return cluster_id
    except UNREADABLE as error:
        raise corrupt(path, error) from error


def encode_controller(broker_id: int, now_ms: int) -> bytes:
    return encode({"version": 1, "brokerid": broker_id, "timestamp": str(now_ms)})


def decode_controller(path: str, data: bytes) -> int:
    """The id of the broker that is the controller."""
    try:
        broker_id = int(json.loads(data)["brokerid"])
        check_number("the id of a broker", broker_id, NO_CONTROLLER)
        return broker_id
    except UNREADABLE as error:
        raise corrupt(path, error) from error


def decode_integer(path: str, data: bytes) -> int:
    """A node that is a number in plain digits."""
    try:
        number = int(data)
        check_number("the number", number)
        return number
    except ValueError as error:
        raise corrupt(path, error) from error


def encode(document: Mapping[str, Any]) -> bytes:
    """JSON without spaces, as Kafka writes it."""
    return json.dumps(document, separators=(",", ":")).encode()


def _topic_id(text: str) -> uuid.UUID:
    topic_id = topic_id_from_text(text)
    check_topic_id(topic_id)
    return topic_id


def corrupt(path: str, error: Exception) -> CorruptNodeError:
    """What to raise for a node whose reading raised `error`."""
    reason = f"{error} is missing" if isinstance(error, KeyError) else str(error)
    return CorruptNodeError(path, reason.rstrip("."))
