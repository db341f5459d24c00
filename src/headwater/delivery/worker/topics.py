"""The topics of a worker's group for what it could not handle: looked for, or created, at first."""

from __future__ import annotations

import logging
from typing import Final

from headwater.base.errors import ErrorCode, KafkaError
from headwater.client.admin.configs import ConfigResource, ResourceType
from headwater.client.admin.topics import NewTopic
from headwater.client.kafka_errors import UnknownTopicOrPartitionError
from headwater.delivery.worker.clients import WorkerAdmin
from headwater.delivery.worker.options import WorkerOptions
from headwater.delivery.worker.policy import DELAY_MODE, RETRY_MODE
from headwater.wire.delayed.retry_topics import dead_letter_topic, retry_topic

#: Of Apache Kafka: what says that a topic is there for dead letters.
_DEAD_LETTERS: Final = {"errors.deadletterqueue.group.enable": "true"}

_logger = logging.getLogger(__name__)


async def prepare_topics(admin: WorkerAdmin, options: WorkerOptions) -> bool:
    """See to it that the retry topic is there; tells whether its records come back by themselves.

    They do where its broker knows `delay.mode=retry`. Anywhere else failed records stay in it: to
    read them there would be to fail again at once.
    """
    await admin.start()
    try:
        retry = retry_topic(options.group)
        if not await _exists(admin, retry):
            if not options.create_topics:
                raise UnknownTopicOrPartitionError(
                    f"There is no topic {retry!r} for what the group {options.group!r} cannot "
                    f"handle: run `headwater retry enable {options.group} --topics "
                    f"{','.join(options.handlers)}`, or give create_topics=True."
                )
            await _create(admin, options)
        is_waiting = await _delay_mode(admin, retry) == RETRY_MODE
        if not is_waiting:
            _logger.warning(
                "The topic %s has no %s=%s: what fails is kept there, and is not tried again.",
                *(retry, DELAY_MODE, RETRY_MODE),
            )
        return is_waiting
    finally:
        await admin.close()


async def _exists(admin: WorkerAdmin, name: str) -> bool:
    found = (await admin.describe_topics([name]))[name]
    if not isinstance(found, KafkaError):
        return True
    if found.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        return False
    raise found


async def _create(admin: WorkerAdmin, options: WorkerOptions) -> None:
    """Dead letters first: the retry topic names where they go."""
    dead, retry = dead_letter_topic(options.group), retry_topic(options.group)
    replicas = options.replication_factor
    for topic in (
        NewTopic(dead, 1, replicas, configs=_DEAD_LETTERS),
        NewTopic(
            retry,
            options.retry_partitions,
            replicas,
            configs=options.policy.topic_configs(options.group),
        ),
    ):
        outcome = (await admin.create_topics([topic], raise_errors=False))[topic.name]
        is_there = (
            isinstance(outcome, KafkaError) and outcome.code is ErrorCode.TOPIC_ALREADY_EXISTS
        )
        if isinstance(outcome, KafkaError) and not is_there:
            raise outcome


async def _delay_mode(admin: WorkerAdmin, name: str) -> str | None:
    resource = ConfigResource(ResourceType.TOPIC, name)
    entries = (await admin.describe_configs([resource], names=[DELAY_MODE]))[resource]
    if isinstance(entries, KafkaError):
        raise entries
    return next((entry.value for entry in entries if entry.name == DELAY_MODE), None)
