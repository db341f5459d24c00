"""Metadata (key 3): the brokers, and topics with their partitions' leaders.

In v0 a replica that cannot be reached is left out and the partition marked; later versions list it.
"""

import uuid
from collections.abc import Iterable
from typing import TypeVar

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import ZERO_TOPIC_ID, validate_topic_name
from headwater.broker.access.authorized_operations import (
    CLUSTER_OPERATIONS,
    NOT_ASKED,
    TOPIC_OPERATIONS,
)
from headwater.broker.context import RequestContext
from headwater.broker.handlers.cards.all_cards import CARDS
from headwater.broker.peers.advertised_addresses import client_side
from headwater.broker.requests.api_handler import ApiHandler
from headwater.broker.requests.fair_turns import in_turns
from headwater.broker.topics.auto_creation import create_missing
from headwater.broker.topics.partition_description import PartitionDescription, ReachableBrokers
from headwater.cluster.image.image import TopicImage, is_internal
from headwater.wire.api_keys import ApiKey
from headwater.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

_LISTENER_NOT_FOUND_SINCE = 6
_TOPIC_IDS_SINCE = 12

_Item = TypeVar("_Item")


async def handle(request: MetadataRequest, context: RequestContext) -> MetadataResponse:
    version = context.api_version
    try:
        _check(request, version)
    except KafkaError as error:
        return _refusal(request, error.code)
    failures = await _create_missing(request, context)
    image = context.broker.image
    client = client_side(context)
    reachable = ReachableBrokers(image, client)
    operations = TOPIC_OPERATIONS if request.include_topic_authorized_operations else NOT_ASKED

    def found(topic: TopicImage) -> MetadataResponseTopic:
        return MetadataResponseTopic(
            name=topic.name,
            topic_id=topic.topic_id,
            is_internal=is_internal(topic.name),
            partitions=[
                answer_partition(number, reachable.describe(partition), version)
                for number, partition in enumerate(topic.partitions)
            ],
            topic_authorized_operations=operations,
        )

    topics = []
    if _wants_all(request, version):
        topics = [found(topic) async for topic in in_turns(image.topics.values())]
    elif _uses_ids(request):
        async for topic_id in in_turns(_asked_ids(request)):
            topic = image.topic_by_id(topic_id)
            topics.append(
                found(topic)
                if topic is not None
                else MetadataResponseTopic(
                    name=None, topic_id=topic_id, error_code=ErrorCode.UNKNOWN_TOPIC_ID
                )
            )
    else:
        async for name in in_turns(_asked_names(request)):
            topic = image.topics.get(name)
            topics.append(
                found(topic)
                if topic is not None
                else MetadataResponseTopic(
                    name=name,
                    is_internal=is_internal(name),
                    error_code=failures.get(name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
                    topic_authorized_operations=operations,
                )
            )
    asked_for_cluster = request.include_cluster_authorized_operations
    named = {**context.broker.departed.named(), **image.brokers}
    return MetadataResponse(
        brokers=[
            MetadataResponseBroker(
                node_id=broker_id, host=address.host, port=address.port, rack=broker.rack
            )
            for broker_id, broker in sorted(named.items())
            if (address := client.address_of(broker)) is not None
        ],
        cluster_id=context.broker.cluster_id,
        controller_id=reachable.controller_id,
        topics=topics,
        cluster_authorized_operations=CLUSTER_OPERATIONS if asked_for_cluster else NOT_ASKED,
    )


def _check(request: MetadataRequest, version: int) -> None:
    for topic in request.topics or ():
        if version < _TOPIC_IDS_SINCE and (topic.name is None or topic.topic_id != ZERO_TOPIC_ID):
            raise KafkaError(
                ErrorCode.INVALID_REQUEST, "Topics are named by id from version 12 on."
            )
        if topic.name is None and topic.topic_id == ZERO_TOPIC_ID:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "A topic has neither a name nor an id.")


def _refusal(request: MetadataRequest, code: ErrorCode) -> MetadataResponse:
    def refuse(topic: MetadataRequestTopic) -> MetadataResponseTopic:
        return MetadataResponseTopic(
            name=topic.name or "", topic_id=topic.topic_id, error_code=code
        )

    return MetadataResponse(topics=[refuse(topic) for topic in request.topics or ()])


def _wants_all(request: MetadataRequest, version: int) -> bool:
    return request.topics is None or (version == 0 and not request.topics)


def _uses_ids(request: MetadataRequest) -> bool:
    """One id is enough: names beside it are not looked at, as in Kafka."""
    return bool(_asked_ids(request))


def _asked_ids(request: MetadataRequest) -> list[uuid.UUID]:
    return _unique(
        topic.topic_id for topic in request.topics or () if topic.topic_id != ZERO_TOPIC_ID
    )


def _asked_names(request: MetadataRequest) -> list[str]:
    return _unique(topic.name for topic in request.topics or () if topic.name is not None)


async def _create_missing(
    request: MetadataRequest, context: RequestContext
) -> dict[str, ErrorCode]:
    """Create the topics that are not there, if that is allowed; why a topic stays away."""
    if _uses_ids(request):
        return {}
    image = context.broker.image
    failures: dict[str, ErrorCode] = {}
    missing = []
    async for name in in_turns(_asked_names(request)):
        if name not in image.topics:
            try:
                validate_topic_name(name)
                missing.append(name)
            except KafkaError as error:
                failures[name] = error.code
    if missing and request.allow_auto_topic_creation:
        failures |= await create_missing(missing, context)
    return failures


def answer_partition(
    number: int, described: PartitionDescription, version: int
) -> MetadataResponsePartition:
    error, replicas, isr = described.error, described.replicas, described.isr
    if error is ErrorCode.LISTENER_NOT_FOUND and version < _LISTENER_NOT_FOUND_SINCE:
        error = ErrorCode.LEADER_NOT_AVAILABLE
    if version == 0 and described.offline:
        replicas = [replica for replica in replicas if replica not in described.offline]
        isr = [replica for replica in isr if replica not in described.offline]
        error = error or ErrorCode.REPLICA_NOT_AVAILABLE
    return MetadataResponsePartition(
        error_code=error,
        partition_index=number,
        leader_id=described.leader,
        leader_epoch=described.leader_epoch,
        replica_nodes=replicas,
        isr_nodes=isr,
        offline_replicas=described.offline,
    )


def _unique(items: Iterable[_Item]) -> list[_Item]:
    return list(dict.fromkeys(items))


API = ApiHandler(CARDS[ApiKey.METADATA], handle)
