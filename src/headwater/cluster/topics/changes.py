"""Creates, grows and deletes topics, from the check of a request to the new image.

The rules are in `creation`, `growth` and `deletion`; here is the order of the
steps. Each topic of a request is a transaction of its own, since each has its own answer, but all
of them wait for the store together and make one change of the image.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.printable import listed
from headwater.base.randomness import SeededRandom
from headwater.cluster.controller.publisher import Publisher
from headwater.cluster.controller.writes import ControllerWrites
from headwater.cluster.image.change import ImageEdits
from headwater.cluster.image.image import ConfigImage, ConfigResource, ResourceKind, TopicImage
from headwater.cluster.node_locations import topic_deletion_path
from headwater.cluster.store.metadata_store import Delete, MetadataStore, Operation
from headwater.cluster.topics.completion import unwritten_partitions
from headwater.cluster.topics.creation import TopicCreation, TopicPlan, creation_transactions
from headwater.cluster.topics.deletion import (
    find_doomed_topic,
    mark_operations,
    removal_transactions,
)
from headwater.cluster.topics.growth import growth_transactions, plan_growth
from headwater.cluster.topics.name_collisions import NameCollisions
from headwater.cluster.topics.new_topic import (
    ControllerOptions,
    CreatedTopic,
    NewPartitions,
    NewTopic,
)

_logger = logging.getLogger(__name__)

DeletionAnswers = dict[str | uuid.UUID, KafkaError | None]


class Doomed(NamedTuple):
    """What came of the first half of a deletion."""

    answers: DeletionAnswers
    #: The names of the topics that are marked.
    names: dict[str | uuid.UUID, str]


class TopicChanges:
    """What the controller does about topics; its methods must not run at the same time."""

    def __init__(
        self,
        store: MetadataStore,
        writes: ControllerWrites,
        publisher: Publisher,
        options: ControllerOptions,
        random: SeededRandom,
        active_brokers: Callable[[], Collection[int]],
    ) -> None:
        self._store = store
        self._writes = writes
        self._publisher = publisher
        self._options = options
        self._random = random
        #: The live brokers without those that are about to stop.
        self._active_brokers = active_brokers
        self._creation = TopicCreation(options, random)
        self._collisions = NameCollisions(publisher.image.topics)
        #: Topics that are marked and out of the image, but whose nodes are not removed yet.
        self._leftovers: dict[str, None] = {}
        #: Topics that an earlier controller has marked, and that are still in the image.
        self._marked: dict[str, uuid.UUID] = {}

    async def create(
        self, requests: Sequence[NewTopic], *, validate_only: bool
    ) -> dict[str, CreatedTopic | KafkaError]:
        """Create the topics that may be; by name, what was created or why it was not."""
        left = await self.remove_leftovers()
        answers = self._creation.plan(
            requests, self._publisher.image, self._active_brokers(), self._collisions
        )
        # A name whose old nodes are still there cannot be had yet.
        answers |= {name: left[name] for name in answers.keys() & left}
        plans = {name: plan for name, plan in answers.items() if isinstance(plan, TopicPlan)}
        errors: dict[str, KafkaError] = {}
        if plans and not validate_only:
            errors = await self._carry_out(plans)
        return {
            name: answer.created(validate_only=validate_only)
            if isinstance(answer, TopicPlan)
            else answer
            for name, answer in (answers | errors).items()
        }

    async def _carry_out(self, plans: dict[str, TopicPlan]) -> dict[str, KafkaError]:
        epoch = self._writes.epoch
        errors = await self._write_each(
            {name: creation_transactions(plan, epoch) for name, plan in plans.items()}
        )
        edits = ImageEdits()
        for name, plan in plans.items():
            if name not in errors:
                edits.topics[name] = plan.topic
                configs = ConfigImage(MappingProxyType(dict(plan.configs)), 0)
                edits.configs[ConfigResource(ResourceKind.TOPIC, name)] = configs
                self._collisions.add(name)
        self._announce(edits)
        return errors

    async def grow(
        self, requests: Sequence[NewPartitions], *, validate_only: bool
    ) -> dict[str, KafkaError | None]:
        """Add partitions to topics; by name, why they were not added, or None if they were."""
        image, active = self._publisher.image, self._active_brokers()
        answers: dict[str, KafkaError | None] = {}
        grown: dict[str, TopicImage] = {}
        for request in requests:
            if request.topic in answers:
                reason = f"The topic {request.topic!r} is in the request more than once."
                answers[request.topic] = KafkaError(ErrorCode.INVALID_REQUEST, reason)
                grown.pop(request.topic, None)
                continue
            try:
                topic = plan_growth(request, image, active, self._random.generator)
                grown[request.topic] = topic
                answers[request.topic] = None
            except KafkaError as error:
                answers[request.topic] = error
        if validate_only or not grown:
            return answers
        errors = await self._write_each(
            {
                name: growth_transactions(
                    topic, len(image.topics[name].partitions), self._writes.epoch
                )
                for name, topic in grown.items()
            }
        )
        edits = ImageEdits()
        edits.topics.update((name, topic) for name, topic in grown.items() if name not in errors)
        self._announce(edits)
        return answers | errors

    async def doom(self, targets: Iterable[str | uuid.UUID]) -> Doomed:
        """The first half of a deletion, by name or id: mark topics and take them out of the image.

        When the brokers have deleted the logs, `remove_leftovers` is the other half. The answers
        are why a topic cannot be deleted, or None.
        """
        answers: DeletionAnswers = {}
        doomed: dict[str | uuid.UUID, TopicImage] = {}
        for target in targets:
            try:
                if not self._options.topic_deletion_enabled:
                    raise KafkaError(ErrorCode.TOPIC_DELETION_DISABLED)
                doomed[target] = find_doomed_topic(target, self._publisher.image)
                answers[target] = None
            except KafkaError as error:
                answers[target] = error
        topics = {topic.name: topic for topic in doomed.values()}
        errors = await self._writes.multi_each(
            {name: mark_operations(name) for name in topics if name not in self._marked}
        )
        for name in topics:
            self._marked.pop(name, None)
        self._announce(self._without([name for name in topics if name not in errors]))
        answers |= {target: errors.get(topic.name) for target, topic in doomed.items()}
        names = {target: topic.name for target, topic in doomed.items()}
        return Doomed(answers, {each: name for each, name in names.items() if not answers[each]})

    async def take_over(self, marked: Sequence[str]) -> None:
        """Set right, before anything is announced, what an earlier controller had marked.

        A topic that is not all there any more is forgotten: its removal has begun, so the brokers
        have heard of its end. The mark of a topic that is gone goes too, before there can be
        another one of that name. One that cannot be read keeps its mark until it can. The others
        are for `doom_marked`.
        """
        topics, unreadable = self._publisher.image.topics, self._publisher.image.unreadable_topics
        strays = {
            name: [Delete(topic_deletion_path(name))]
            for name in marked
            if name not in topics and name not in unreadable
        }
        for error in (await self._writes.multi_each(strays)).values():
            raise error
        found = [topics[name] for name in marked if name in topics]
        edits = self._without([topic.name for topic in found if unwritten_partitions(topic)])
        self._marked = {
            topic.name: topic.topic_id for topic in found if topic.name not in edits.topics
        }
        if not edits.is_empty:
            self._publisher.image = edits.apply(self._publisher.image).image

    async def doom_marked(self) -> None:
        """The first half of the deletion of the topics that were found marked."""
        marked, self._marked = self._marked, {}
        image = self._publisher.image
        # Somebody may have deleted one meanwhile, and made another of that name.
        found = [image.topic_by_id(topic_id) for topic_id in marked.values()]
        names = [topic.name for topic in found if topic is not None]
        if names:
            _logger.info("A deletion that was interrupted goes on, of topics %s.", listed(names))
        self._announce(self._without(names))

    def _without(self, names: Sequence[str]) -> ImageEdits:
        """Topics that go: out of the image, and among those whose nodes are to be removed."""
        edits = ImageEdits()
        for name in names:
            edits.topics[name] = None
            edits.configs[ConfigResource(ResourceKind.TOPIC, name)] = None
            self._collisions.discard(name)
            self._leftovers[name] = None
        return edits

    async def remove_leftovers(self) -> dict[str, KafkaError]:
        """Remove the nodes of marked topics; by name, why that could not be done."""
        if not self._leftovers:
            return {}
        names = list(self._leftovers)
        with self._writes.kafka_errors():
            found = await asyncio.gather(*(removal_transactions(self._store, n) for n in names))
        before_last = {
            (name, index): operations
            for name, transactions in zip(names, found, strict=True)
            for index, operations in enumerate(transactions[:-1])
        }
        errors: dict[str, KafkaError] = {}
        for (name, _), error in (await self._writes.multi_each(before_last)).items():
            errors[name] = error
        errors |= await self._writes.multi_each(
            {
                name: transactions[-1]
                for name, transactions in zip(names, found, strict=True)
                if name not in errors
            }
        )
        self._leftovers = dict.fromkeys(errors)
        return errors

    async def _write_each(
        self, transactions: Mapping[str, Sequence[Sequence[Operation]]]
    ) -> dict[str, KafkaError]:
        """Do for each topic the first of its transactions and then the others; returns errors."""
        errors = await self._writes.multi_each(
            {name: first for name, (first, *_) in transactions.items()}
        )
        others = {
            (name, index): operations
            for name, (_, *rest) in transactions.items()
            if name not in errors
            for index, operations in enumerate(rest)
        }
        for (name, _), error in (await self._writes.multi_each(others)).items():
            # Whoever is the controller next finds the topic, and completes it.
            errors[name] = self._writes.give_up(f"The topic {name!r} is half written: {error}")
        return errors

    def _announce(self, edits: ImageEdits) -> None:
        if not edits.is_empty:
            self._publisher.announce(edits.apply(self._publisher.image))
