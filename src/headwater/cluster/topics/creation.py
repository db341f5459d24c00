"""Decides whether topics may be created, and what must be written for those that may.

Nothing here reads or writes the store. `plan` answers for each request with a plan or with the
reason against it; `creation_transactions` are the transactions that make a planned topic. Nearly
always that is one: a topic exists with all of its partitions or not at all. A store limits the size
of a transaction, though, so the states of very many partitions are written by more of them; the
first one names all partitions, and a controller that finds some without a state completes them.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Final, NamedTuple

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import METADATA_TOPIC, ZERO_TOPIC_ID, new_topic_id, validate_topic_name
from headwater.base.randomness import SeededRandom
from headwater.cluster.image.image import NO_LEADER, ClusterImage, PartitionImage, TopicImage
from headwater.cluster.node_documents import TopicDocument, encode_configs, encode_topic
from headwater.cluster.node_locations import (
    partition_path,
    partition_state_path,
    partitions_path,
    topic_config_path,
    topic_path,
)
from headwater.cluster.partitions.states import PARTITIONS_PER_MULTI, StateEncoder
from headwater.cluster.store.metadata_store import Create, Operation
from headwater.cluster.topics.cordoning import open_racks
from headwater.cluster.topics.manual_assignment import check_new_topic
from headwater.cluster.topics.name_collisions import NameCollisions
from headwater.cluster.topics.new_topic import (
    USE_DEFAULT,
    ControllerOptions,
    CreatedTopic,
    NewTopic,
)
from headwater.cluster.topics.placement import place_replicas

#: How many partitions one request may ask for, as in Kafka: it bounds what a peer can make us do.
PARTITIONS_PER_REQUEST_MAX: Final = 10_000


class TopicPlan(NamedTuple):
    """A topic that may be created, as it will be."""

    topic: TopicImage
    configs: Mapping[str, str]

    def created(self, *, validate_only: bool) -> CreatedTopic:
        return CreatedTopic(
            self.topic.name,
            ZERO_TOPIC_ID if validate_only else self.topic.topic_id,
            len(self.topic.partitions),
            self.topic.replication_factor,
            self.configs,
        )


class TopicCreation:
    """The rules for new topics."""

    def __init__(self, options: ControllerOptions, random: SeededRandom) -> None:
        self._options = options
        self._random = random

    def plan(
        self,
        requests: Sequence[NewTopic],
        image: ClusterImage,
        active: Collection[int],
        collisions: NameCollisions,
    ) -> dict[str, TopicPlan | KafkaError]:
        """By name, in the order of the requests, a plan or the reason why not.

        `active` are the live brokers without those that are about to stop.
        """
        counts = Counter(request.name for request in requests)
        too_many = sum(map(self._partitions_asked, requests)) > PARTITIONS_PER_REQUEST_MAX
        planned = NameCollisions()
        answers: dict[str, TopicPlan | KafkaError] = {}
        for request in requests:
            try:
                if counts[request.name] > 1:
                    reason = f"The topic {request.name!r} is in the request more than once."
                    raise KafkaError(ErrorCode.INVALID_REQUEST, reason)
                _check_name(request.name, image, (collisions, planned))
                if too_many:
                    reason = f"One request may ask for {PARTITIONS_PER_REQUEST_MAX} partitions."
                    raise KafkaError(ErrorCode.POLICY_VIOLATION, reason)
                answers[request.name] = self._plan_one(request, image, active)
                planned.add(request.name)
            except KafkaError as error:
                answers[request.name] = error
        return answers

    def _partitions_asked(self, request: NewTopic) -> int:
        if request.assignments:
            return len(request.assignments)
        if request.partition_count == USE_DEFAULT:
            return self._options.default_partition_count
        return max(request.partition_count, 0)

    def _plan_one(
        self, request: NewTopic, image: ClusterImage, active: Collection[int]
    ) -> TopicPlan:
        configs = self._checked_configs(request)
        if request.assignments:
            replicas = _manual_replicas(request, image, active)
            self._ask_policy(request, None, None, dict(enumerate(replicas)), configs)
        else:
            partition_count, replication_factor = self._checked_numbers(request)
            racks = open_racks(image, replication_factor)
            self._ask_policy(request, partition_count, replication_factor, None, configs)
            generator = self._random.generator
            replicas = place_replicas(racks, partition_count, replication_factor, generator)
        topic_id = self._draw_topic_id(image)
        partitions = new_partitions(replicas, image.brokers, active)
        return TopicPlan(TopicImage(request.name, topic_id, partitions), configs)

    def _checked_numbers(self, request: NewTopic) -> tuple[int, int]:
        partition_count, replication_factor = request.partition_count, request.replication_factor
        if partition_count == USE_DEFAULT:
            partition_count = self._options.default_partition_count
        if replication_factor == USE_DEFAULT:
            replication_factor = self._options.default_replication_factor
        if replication_factor <= 0:
            raise KafkaError(
                ErrorCode.INVALID_REPLICATION_FACTOR,
                "The replication factor must be larger than 0, or -1 for the default.",
            )
        if partition_count <= 0:
            raise KafkaError(
                ErrorCode.INVALID_PARTITIONS,
                "The number of partitions must be larger than 0, or -1 for the default.",
            )
        return partition_count, replication_factor

    def _checked_configs(self, request: NewTopic) -> dict[str, str]:
        configs = {}
        for name, value in request.configs.items():
            if value is None:
                reason = f"The setting {name} of topic {request.name!r} has no value."
                raise KafkaError(ErrorCode.INVALID_CONFIG, reason)
            configs[name] = value
        self._options.validate_topic_configs(configs, {})
        return configs

    def _ask_policy(
        self,
        request: NewTopic,
        partition_count: int | None,
        replication_factor: int | None,
        assignments: Mapping[int, Sequence[int]] | None,
        configs: Mapping[str, str],
    ) -> None:
        policy = self._options.create_topic_policy
        if policy is None:
            return
        try:
            policy.validate(request.name, partition_count, replication_factor, assignments, configs)
        except Exception as error:
            # Whatever the policy raises is its way to say no.
            raise KafkaError(ErrorCode.POLICY_VIOLATION, str(error)) from error

    def _draw_topic_id(self, image: ClusterImage) -> uuid.UUID:
        while True:
            topic_id = new_topic_id(self._random.uuid)
            if topic_id not in image.topic_names:
                return topic_id


def _check_name(name: str, image: ClusterImage, collisions: Sequence[NameCollisions]) -> None:
    validate_topic_name(name)
    if name == METADATA_TOPIC:
        # Kafka's own answer: nobody has the right to make it.
        raise KafkaError(
            ErrorCode.TOPIC_AUTHORIZATION_FAILED, f"The name {name} is kept for Kafka's own log."
        )
    if name in image.topics or name in image.unreadable_topics:
        raise topic_exists(name)
    for known in collisions:
        other = known.find(name)
        if other is not None:
            raise KafkaError(
                ErrorCode.INVALID_TOPIC_EXCEPTION,
                f"The topic name {name!r} collides with {other!r}: '.' and '_' count as the same.",
            )


def topic_exists(name: str) -> KafkaError:
    return KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, f"The topic {name!r} exists already.")


def _manual_replicas(
    request: NewTopic, image: ClusterImage, active: Collection[int]
) -> list[tuple[int, ...]]:
    numbers = (request.partition_count, request.replication_factor)
    if numbers != (USE_DEFAULT, USE_DEFAULT):
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            "With a manual assignment, the number of partitions and the replication factor must "
            "be -1.",
        )
    return check_new_topic(request.assignments, image, active)


def new_partitions(
    replicas: Sequence[tuple[int, ...]], live_brokers: Collection[int], active: Collection[int]
) -> tuple[PartitionImage, ...]:
    """Partitions at their beginning: the first live replica leads, all live ones are in sync.

    Those that are not active, because they are about to stop, count only where there are no others.
    Where none is alive, all are in sync, as nobody has anything yet, and none leads.
    """
    known: dict[tuple[int, ...], PartitionImage] = {}
    for brokers in replicas:
        if brokers not in known:
            live = tuple(broker for broker in brokers if broker in active)
            live = live or tuple(broker for broker in brokers if broker in live_brokers)
            leader = live[0] if live else NO_LEADER
            known[brokers] = PartitionImage(brokers, live or brokers, leader, 0, 0)
    return tuple(known[brokers] for brokers in replicas)


def creation_transactions(plan: TopicPlan, controller_epoch: int) -> list[list[Operation]]:
    """What makes the topic: when the first transaction is done it exists, and the rest must be."""
    name, topic_id, partitions = plan.topic.name, plan.topic.topic_id, plan.topic.partitions
    document = TopicDocument.of(topic_id, partitions)
    first: list[Operation] = [
        Create(topic_config_path(name), encode_configs(plan.configs)),
        Create(topic_path(name), encode_topic(document)),
        Create(partitions_path(name), b""),
    ]
    return with_partitions(first, name, dict(enumerate(partitions)), controller_epoch)


def with_partitions(
    first: list[Operation],
    topic: str,
    partitions: Mapping[int, PartitionImage],
    controller_epoch: int,
) -> list[list[Operation]]:
    """The operations with those that make new partitions, in as many transactions as it takes."""
    encode = StateEncoder(controller_epoch).encode
    transactions = [first]
    for index, (number, partition) in enumerate(partitions.items()):
        if index and index % PARTITIONS_PER_MULTI == 0:
            transactions.append([])
        transactions[-1] += (
            Create(partition_path(topic, number), b""),
            Create(partition_state_path(topic, number), encode(partition)),
        )
    return transactions
