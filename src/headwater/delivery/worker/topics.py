"""The topics of a worker's group for what it could not handle: looked for, or created, at first.

There are three kinds, and the topics themselves say which it is. On Headwater one retry topic,
which waits and counts; or a queue for each delay, which do the same. Anywhere else a topic for what
failed and one for what comes back, and a retry service between them.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import NamedTuple

from headwater.base.durations import parse_duration_ms
from headwater.base.errors import ErrorCode, KafkaError
from headwater.client.admin.configs import ConfigResource, ResourceType
from headwater.client.admin.topics import NewTopic
from headwater.client.kafka_errors import UnknownTopicOrPartitionError
from headwater.delivery.group_topics import DEAD_LETTER_CONFIGS, KEPT_CONFIGS, service_topics
from headwater.delivery.worker.clients import WorkerAdmin
from headwater.delivery.worker.options import WorkerOptions
from headwater.delivery.worker.policy import (
    DELAY_MAX_MS,
    DELAY_MODE,
    RETRY_DELAYS,
    RETRY_GROUP,
    RETRY_MODE,
)
from headwater.wire.delayed.retry_topics import (
    dead_letter_topic,
    queue_prefix,
    ready_topic,
    retry_queue,
    retry_topic,
)

_logger = logging.getLogger(__name__)


class GroupTopics(NamedTuple):
    #: Where failed records come back; none if they stay where they are.
    retry_topics: tuple[str, ...]
    #: By attempt, the delays of the group's queues; empty if it has one retry topic.
    queues_ms: tuple[int, ...]
    #: The longest time that a handler may ask for; None if nobody says.
    after_max_ms: int | None = None


async def prepare_topics(admin: WorkerAdmin, options: WorkerOptions) -> GroupTopics:
    """See to it that there are topics for what fails, and tell how they are used."""
    await admin.start()
    try:
        found = await _find(admin, options.group)
        if not found:
            if not options.create_topics:
                raise UnknownTopicOrPartitionError(
                    f"There is no topic {retry_topic(options.group)!r} for what the group "
                    f"{options.group!r} cannot handle: run `headwater retry enable {options.group} "
                    f"--topics {','.join(options.handlers)}`, or give create_topics=True."
                )
            await _create(admin, options)
            found = await _find(admin, options.group)
        topics = _group_topics(options.group, found)
        longest_ms = [
            int(found[name][DELAY_MAX_MS])
            for name in topics.retry_topics
            if found[name].get(DELAY_MAX_MS)
        ]
        return topics._replace(after_max_ms=min(longest_ms, default=None))
    finally:
        await admin.close()


async def _find(admin: WorkerAdmin, group: str) -> dict[str, Mapping[str, str]]:
    """The retry topics that a group may have, with their settings."""
    names = [
        topic.name
        for topic in await admin.list_topics()
        if topic.name == retry_topic(group) or topic.name.startswith(queue_prefix(group))
    ]
    resources = [ConfigResource(ResourceType.TOPIC, name) for name in sorted(names)]
    if not resources:
        return {}
    asked = [DELAY_MODE, DELAY_MAX_MS, RETRY_DELAYS, RETRY_GROUP]
    found: dict[str, Mapping[str, str]] = {}
    for resource, entries in (await admin.describe_configs(resources, names=asked)).items():
        if isinstance(entries, KafkaError):
            raise entries
        found[resource.name] = {entry.name: entry.value or "" for entry in entries}
    # A topic that only begins like a queue may be the retry topic of another group.
    return {
        name: settings
        for name, settings in found.items()
        if name in (retry_topic(group), ready_topic(group)) or settings.get(RETRY_GROUP) == group
    }


def _group_topics(group: str, found: Mapping[str, Mapping[str, str]]) -> GroupTopics:
    waiting = [name for name, each in found.items() if each.get(DELAY_MODE) == RETRY_MODE]
    queues = [name for name in waiting if name != retry_topic(group)]
    if queues:
        texts = found[queues[0]][RETRY_DELAYS].split(",")
        delays_ms = tuple(parse_duration_ms(text) for text in texts)
        for delay_ms in delays_ms:
            if retry_queue(group, delay_ms) not in queues:
                raise UnknownTopicOrPartitionError(
                    f"The group {group!r} has queues for what it cannot handle, but none called "
                    f"{retry_queue(group, delay_ms)!r}: run `headwater retry enable {group} "
                    f"--queues --delays {','.join(texts)} --topics ...` again."
                )
        return GroupTopics(tuple(waiting), delays_ms)
    if waiting:
        return GroupTopics(tuple(waiting), ())
    if ready_topic(group) in found and retry_topic(group) in found:
        _logger.info(
            "What fails comes back in %s, as long as `headwater retry-service %s` runs.",
            *(ready_topic(group), group),
        )
        return GroupTopics((ready_topic(group),), ())
    # To read it there would be to fail again at once.
    _logger.warning(
        "The topic %s has no %s=%s: what fails is kept there, and is not tried again.",
        *(retry_topic(group), DELAY_MODE, RETRY_MODE),
    )
    return GroupTopics((), ())


async def _create(admin: WorkerAdmin, options: WorkerOptions) -> None:
    """Dead letters first: the retry topic names where they go."""
    group, replicas = options.group, options.replication_factor
    configs = options.policy.topic_configs(group)
    dead_configs = {**DEAD_LETTER_CONFIGS, **KEPT_CONFIGS}
    own = [NewTopic(dead_letter_topic(group), 1, replicas, configs=dead_configs)]
    own += [
        NewTopic(name, options.retry_partitions, replicas, configs=configs)
        for name in options.policy.topic_names(group)
    ]
    try:
        for topic in own:
            await _create_one(admin, topic)
    except KafkaError as error:
        if error.code is not ErrorCode.INVALID_CONFIG:
            raise
        _logger.warning(
            "These brokers have no retry topics: `headwater retry-service %s` has to run.", group
        )
        for topic in service_topics(group, options.retry_partitions, replicas):
            await _create_one(admin, topic)


async def _create_one(admin: WorkerAdmin, topic: NewTopic) -> None:
    outcome = (await admin.create_topics([topic], raise_errors=False))[topic.name]
    is_there = isinstance(outcome, KafkaError) and outcome.code is ErrorCode.TOPIC_ALREADY_EXISTS
    if isinstance(outcome, KafkaError) and not is_there:
        raise outcome
