"""What `headwater retry` does on a cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from headwater.base.errors import ErrorCode, KafkaError
from headwater.cli.options.nearest_name import describe_topics
from headwater.cli.output.plain_table import Column, Row, print_rows
from headwater.client.admin import ConfigOperations, DelayedOperations, TopicOperations
from headwater.client.admin.configs import ConfigChange, ConfigResource, ResourceType
from headwater.client.admin.topics import NewTopic
from headwater.client.connection.cluster_connection import ClusterConnection
from headwater.delivery.worker.policy import DELAY_MODE, RETRY_MODE, RetryPolicy
from headwater.wire.delayed.retry_topics import dead_letter_topic, group_of, retry_topic

_DEAD_LETTERS: Final = "errors.deadletterqueue.group.enable"
_TARGET: Final = "retry.dead.letter.topic"
_COLUMNS: Final = (
    Column("GROUP", "group"),
    Column("RETRY TOPIC", "retry_topic"),
    Column("DELAYS", "delays"),
    Column("ATTEMPTS", "attempts", is_number=True),
    Column("DEAD LETTERS", "dead_letter_topic"),
    Column("WAITING", "waiting", is_number=True),
)


async def enable(
    connection: ClusterConnection,
    group: str,
    sources: Sequence[str],
    policy: RetryPolicy,
    dead_topic: str | None,
) -> None:
    """Dead letters first: the retry topic names where they go."""
    found = await describe_topics(connection, sources)
    count = max(len(topic.partitions) for topic in found.values())
    dead = dead_topic or dead_letter_topic(group)
    retry = retry_topic(group)
    await _have(connection, dead, count, {_DEAD_LETTERS: "true"})
    await _have(connection, retry, count, policy.topic_configs(group) | {_TARGET: dead})
    print(
        f"A consumer of {group} that cannot handle a record produces it to {retry}, with the "
        "header headwater-origin, and subscribes to that topic too."
    )


async def _have(
    connection: ClusterConnection, name: str, count: int, configs: Mapping[str, str]
) -> None:
    """Create a topic, or change its settings if it is there."""
    topic = NewTopic(name, count, configs=configs)
    outcome = (await TopicOperations(connection).create_topics([topic], raise_errors=False))[name]
    if not isinstance(outcome, KafkaError):
        print(f"Created {name} with {count} partition{'' if count == 1 else 's'}.")
        return
    if outcome.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
        raise outcome
    changes = [ConfigChange(*each) for each in configs.items()]
    await ConfigOperations(connection).alter_configs(
        {ConfigResource(ResourceType.TOPIC, name): changes}
    )
    print(f"{name} was there: its settings are changed.")


async def list_groups(connection: ClusterConnection, *, as_json: bool) -> None:
    names = [topic.name for topic in await TopicOperations(connection).list_topics()]
    resources = [ConfigResource(ResourceType.TOPIC, name) for name in names]
    described = await ConfigOperations(connection).describe_configs(
        resources, names=[DELAY_MODE, "retry.delays", "retry.attempts", _TARGET]
    )
    settings = {
        resource.name: {entry.name: entry.value or "" for entry in entries}
        for resource, entries in described.items()
        if not isinstance(entries, KafkaError)
    }
    retrying = sorted(name for name in names if settings[name].get(DELAY_MODE) == RETRY_MODE)
    waiting = await _waiting(connection, retrying)
    print_rows(
        _COLUMNS,
        [_row(name, settings[name], waiting.get(name)) for name in retrying],
        as_json=as_json,
    )


async def _waiting(connection: ClusterConnection, topics: Sequence[str]) -> dict[str, int]:
    """How many records wait in each topic, as far as its leaders tell."""
    counts: dict[str, int] = {}
    if topics:
        stats = await DelayedOperations(connection).delayed_stats(topics)
        for partition, found in stats.items():
            if not isinstance(found, KafkaError):
                counts[partition.topic] = counts.get(partition.topic, 0) + found.waiting
    return counts


def _row(name: str, settings: Mapping[str, str], waiting: int | None) -> Row:
    delays = settings["retry.delays"]
    return {
        "group": group_of(name),
        "retry_topic": name,
        "delays": delays,
        "attempts": int(settings["retry.attempts"]) or len(delays.split(",")),
        "dead_letter_topic": settings[_TARGET],
        "waiting": waiting,
    }
