"""The topics of a delay service, made on its start where they are missing."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from headwater.base.errors import ErrorCode, KafkaError
from headwater.client.admin.async_admin import AsyncAdmin
from headwater.client.admin.outcomes import require_all
from headwater.client.admin.topics import NewTopic
from headwater.client.producer.delay_levels import Level
from headwater.delivery.delay_service.destination import DEAD_TOPIC
from headwater.delivery.delay_service.options import ServiceOptions

_DAY_MS: Final = 86_400_000
#: How long services may be away. Less than the week for which brokers keep a group's offsets: what
#: was forwarded must be gone when nobody knows any more that it was.
_SLACK_MS: Final = 3 * _DAY_MS
#: Retention deletes whole segments, so they must not last.
_SEGMENT_MS: Final = _DAY_MS
_DEAD_RETENTION_MS: Final = 30 * _DAY_MS
#: Dead letters are larger than what they are about.
_DEAD_BYTES_MAX: Final = 8 << 20


def level_topic(level: Level, partition_count: int, replication_factor: int) -> NewTopic:
    """How a level's topic is created.

    The broker's time counts, not the sender's: then a wrong clock of a sender makes nothing early.
    """
    configs = {
        "cleanup.policy": "delete",
        "message.timestamp.type": "LogAppendTime",
        "retention.ms": str(level.delay_ms + _SLACK_MS),
        "retention.bytes": "-1",
        "segment.ms": str(_SEGMENT_MS),
    }
    return NewTopic(level.topic, partition_count, replication_factor, configs=configs)


async def prepare_topics(admin: AsyncAdmin, options: ServiceOptions) -> list[str]:
    """See to it that all topics are there; returns those that were created."""
    wanted = [
        level_topic(level, options.partition_count, options.replication_factor)
        for level in options.levels
    ]
    dead = NewTopic(
        DEAD_TOPIC,
        1,
        options.replication_factor,
        configs={
            "retention.ms": str(_DEAD_RETENTION_MS),
            "max.message.bytes": str(_DEAD_BYTES_MAX),
        },
    )
    return await have_topics(admin, [*wanted, dead], may_create=options.creates_topics)


async def have_topics(
    admin: AsyncAdmin, topics: Sequence[NewTopic], *, may_create: bool
) -> list[str]:
    """Create what is missing, and return its names.

    Raises a `KafkaError` that names what is missing, if it is not to be created.
    """
    wanted = {topic.name: topic for topic in topics}
    found = await admin.describe_topics(list(wanted))
    missing = [
        name
        for name, topic in found.items()
        if isinstance(topic, KafkaError) and topic.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    ]
    require_all({name: topic for name, topic in found.items() if name not in missing})
    if missing and not may_create:
        raise KafkaError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            f"The cluster has no {_listed(missing)}: create what is missing, or leave out "
            "--no-create.",
        )
    if not missing:
        return []
    outcomes = await admin.create_topics([wanted[name] for name in missing], raise_errors=False)
    created = []
    for name, outcome in outcomes.items():
        if not isinstance(outcome, KafkaError):
            created.append(name)
        elif outcome.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
            # A service beside another broker may have been quicker.
            raise outcome
    return created


def _listed(names: Collection[str]) -> str:
    return f"topic {', '.join(names)}" if len(names) == 1 else f"topics {', '.join(names)}"
