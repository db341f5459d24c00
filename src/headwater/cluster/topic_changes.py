"""Creates, grows and deletes topics, from the check of a request to the new image.

The rules are in `topic_creation`, `topic_growth` and `topic_deletion`; here is the order of the
steps. Each topic of a request is a transaction of its own, since each has its own answer, but all
of them wait for the store together and make one change of the image.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from types import MappingProxyType

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.randomness import SeededRandom
from headwater.cluster.controller_writes import ControllerWrites
from headwater.cluster.image import ConfigImage, ConfigResource, ResourceKind, TopicImage
from headwater.cluster.image_change import ImageEdits
from headwater.cluster.image_publisher import ImagePublisher
from headwater.cluster.name_collisions import NameCollisions
from headwater.cluster.new_topic import ControllerOptions, CreatedTopic, NewPartitions, NewTopic
from headwater.cluster.node_locations import topic_deletion_path
from headwater.cluster.store.metadata_store import Delete
from headwater.cluster.topic_creation import TopicCreation, TopicPlan, creation_operations
from headwater.cluster.topic_deletion import find_doomed_topic, mark_operations, removal_operations
from headwater.cluster.topic_growth import growth_operations, plan_growth


class TopicChanges:
    """What the controller does about topics; its methods must not run at the same time."""

    def __init__(
        self,
        writes: ControllerWrites,
        publisher: ImagePublisher,
        options: ControllerOptions,
        random: SeededRandom,
    ) -> None:
        self._writes = writes
        self._publisher = publisher
        self._options = options
        self._random = random
        self._creation = TopicCreation(options, random)
        self._collisions = NameCollisions(publisher.image.topics)
        #: Topics that are marked and out of the image, but whose nodes could not be removed.
        self._leftovers: dict[str, TopicImage] = {}

    async def create(
        self, requests: Sequence[NewTopic], *, validate_only: bool
    ) -> dict[str, CreatedTopic | KafkaError]:
        """Create the topics that may be; by name, what was created or why it was not."""
        left = await self._remove_leftovers()
        answers = self._creation.plan(requests, self._publisher.image, self._collisions)
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
        errors = await self._writes.multi_each(
            {name: creation_operations(plan, self._writes.epoch) for name, plan in plans.items()}
        )
        edits = ImageEdits()
        for name, plan in plans.items():
            if name not in errors:
                edits.topics[name] = plan.topic
                configs = ConfigImage(MappingProxyType(dict(plan.configs)), 0)
                edits.configs[ConfigResource(ResourceKind.TOPIC, name)] = configs
                self._collisions.add(name)
        await self._publish(edits)
        return errors

    async def grow(
        self, requests: Sequence[NewPartitions], *, validate_only: bool
    ) -> dict[str, KafkaError | None]:
        """Add partitions to topics; by name, why they were not added, or None if they were."""
        image = self._publisher.image
        answers: dict[str, KafkaError | None] = {}
        grown: dict[str, TopicImage] = {}
        for request in requests:
            if request.topic in answers:
                reason = f"The topic {request.topic!r} is in the request more than once."
                answers[request.topic] = KafkaError(ErrorCode.INVALID_REQUEST, reason)
                grown.pop(request.topic, None)
                continue
            try:
                topic = plan_growth(request, image, self._random.generator)
                grown[request.topic] = topic
                answers[request.topic] = None
            except KafkaError as error:
                answers[request.topic] = error
        if validate_only or not grown:
            return answers
        counts = {name: len(image.topics[name].partitions) for name in grown}
        errors = await self._writes.multi_each(
            {
                name: growth_operations(topic, counts[name], self._writes.epoch)
                for name, topic in grown.items()
            }
        )
        edits = ImageEdits()
        edits.topics.update((name, topic) for name, topic in grown.items() if name not in errors)
        await self._publish(edits)
        return answers | errors

    async def delete(
        self, targets: Iterable[str | uuid.UUID]
    ) -> dict[str | uuid.UUID, KafkaError | None]:
        """Delete topics by name or id; why one was not deleted, or None if it was."""
        await self._remove_leftovers()
        answers: dict[str | uuid.UUID, KafkaError | None] = {}
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
        marks = {name: mark_operations(name) for name in topics}
        errors = await self._writes.multi_each(marks)
        errors |= await self._finish(
            [topic for name, topic in topics.items() if name not in errors]
        )
        return answers | {target: errors.get(topic.name) for target, topic in doomed.items()}

    async def finish_interrupted(self, marked: Sequence[str]) -> None:
        """Delete the topics that were found marked, and marks of topics that are gone."""
        image = self._publisher.image
        strays = {
            name: [Delete(topic_deletion_path(name))] for name in marked if name not in image.topics
        }
        await self._writes.multi_each(strays)
        await self._finish([image.topics[name] for name in marked if name in image.topics])

    async def _finish(self, topics: Sequence[TopicImage]) -> dict[str, KafkaError]:
        """Take marked topics out of the image, and their nodes out of the store."""
        edits = ImageEdits()
        for topic in topics:
            edits.topics[topic.name] = None
            edits.configs[ConfigResource(ResourceKind.TOPIC, topic.name)] = None
            self._collisions.discard(topic.name)
            self._leftovers[topic.name] = topic
        await self._publish(edits)
        return await self._remove_leftovers()

    async def _remove_leftovers(self) -> dict[str, KafkaError]:
        if not self._leftovers:
            return {}
        errors = await self._writes.multi_each(
            {name: removal_operations(topic) for name, topic in self._leftovers.items()}
        )
        self._leftovers = {name: self._leftovers[name] for name in errors}
        return errors

    async def _publish(self, edits: ImageEdits) -> None:
        if not edits.is_empty:
            await self._publisher.publish(edits.apply(self._publisher.image))
