"""What `headwater retry` does on a cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from headwater.base.durations import show_duration
from headwater.base.errors import ErrorCode, KafkaError
from headwater.cli.options.nearest_name import describe_topics
from headwater.cli.output.plain_table import Column, Row, print_rows
from headwater.client.admin import ConfigOperations, DelayedOperations, TopicOperations
from headwater.client.admin.configs import ConfigChange, ConfigResource, ResourceType
from headwater.client.admin.topics import NewTopic
from headwater.client.connection.cluster_connection import ClusterConnection
from headwater.delivery.group_topics import DEAD_LETTER_CONFIGS, KEPT_CONFIGS, service_topics
from headwater.delivery.worker.policy import (
    DELAY_MODE,
    RETRY_DELAYS,
    RETRY_GROUP,
    RETRY_MODE,
    RetryPolicy,
)
from headwater.wire.delayed.retry_topics import (
    dead_letter_topic,
    group_of,
    queue_prefix,
    ready_topic,
    retry_topic,
)

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
    dead_retention_ms: int | None,
) -> None:
    """Dead letters first: the retry topic names where they go.

    They are kept for as long as was asked for, and for ever in a new topic if nothing was.
    """
    found = await describe_topics(connection, sources)
    count = max(len(topic.partitions) for topic in found.values())
    dead = dead_topic or dead_letter_topic(group)
    if not await _has_retry_topics(connection, sources[0]):
        await _enable_service(connection, group, count, policy, dead, dead_retention_ms)
        return
    configs = policy.topic_configs(group) | {_TARGET: dead}
    names = policy.topic_names(group)
    asked = _retention(dead_retention_ms)
    dead_configs = {**DEAD_LETTER_CONFIGS, **asked}
    await _have(connection, dead, count, dead_configs, new_configs=KEPT_CONFIGS)
    for name in names:
        await _have(connection, name, count, configs)
    left = [name for name in await _queues(connection, group) if name not in names]
    if not policy.queues:
        print(
            f"A consumer of {group} that cannot handle a record produces it to {names[0]}, with "
            "the header headwater-origin, and subscribes to that topic too."
        )
        if left:
            print(f"{group} has queues too, which workers prefer: delete {', '.join(left)}.")
        return
    for name in left:
        await _have(connection, name, count, configs)
        print(f"No record goes to {name} any more: delete it when nothing waits there.")
    print(
        f"A consumer of {group} subscribes to its queues too. It produces a record that it cannot "
        f"handle to the first of them, and one whose headwater-attempts is 1, 2 ... to that of the "
        "next delay."
    )


def _retention(asked_ms: int | None) -> dict[str, str]:
    return {} if asked_ms is None else {"retention.ms": str(asked_ms)}


async def _has_retry_topics(connection: ClusterConnection, topic: str) -> bool:
    """Whether these brokers can have them: then every topic has the setting, on or off."""
    resource = ConfigResource(ResourceType.TOPIC, topic)
    entries = (await ConfigOperations(connection).describe_configs([resource], names=[DELAY_MODE]))[
        resource
    ]
    if isinstance(entries, KafkaError):
        raise entries
    return any(entry.name == DELAY_MODE for entry in entries)


async def _enable_service(
    connection: ClusterConnection,
    group: str,
    count: int,
    policy: RetryPolicy,
    dead: str,
    dead_retention_ms: int | None,
) -> None:
    """On brokers that have no retry topics."""
    if policy.queues or policy.jitter or policy.max_delay is not None:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG,
            "These brokers have no retry topics, and a retry service has neither --queues nor "
            "--jitter nor --max-delay: its records wait in a topic for each delay anyway.",
        )
    asked = _retention(dead_retention_ms)
    for topic in service_topics(group, count, -1, dead):
        configs = {setting: str(value) for setting, value in topic.configs.items()}
        if topic.name == dead:
            await _have(connection, dead, count, asked, new_configs=configs)
        else:
            await _have(connection, topic.name, count, configs)
    delays = ",".join(map(show_duration, policy.delays_ms))
    attempts = f" --attempts {policy.attempts}" if policy.attempts else ""
    other = "" if dead == dead_letter_topic(group) else f" --dead-letter-topic {dead}"
    print(
        f"These brokers have no retry topics, so a service has to run: headwater retry-service "
        f"{group} --delays {delays}{attempts}{other}\n"
        f"A consumer of {group} that cannot handle a record produces it to {retry_topic(group)}, "
        f"with the header headwater-origin, and subscribes to {ready_topic(group)} too."
    )


async def _queues(connection: ClusterConnection, group: str) -> list[str]:
    """Topics that say that they are queues of a group."""
    topics = await TopicOperations(connection).list_topics()
    names = [topic.name for topic in topics if topic.name.startswith(queue_prefix(group))]
    settings = await _settings(connection, names, [RETRY_GROUP]) if names else {}
    return [name for name in names if settings.get(name, {}).get(RETRY_GROUP) == group]


async def _settings(
    connection: ClusterConnection, names: Sequence[str], wanted: Sequence[str]
) -> dict[str, dict[str, str]]:
    """Settings by topic, of those whose settings may be seen."""
    resources = [ConfigResource(ResourceType.TOPIC, name) for name in names]
    described = await ConfigOperations(connection).describe_configs(resources, names=wanted)
    return {
        resource.name: {entry.name: entry.value or "" for entry in entries}
        for resource, entries in described.items()
        if not isinstance(entries, KafkaError)
    }


async def _have(
    connection: ClusterConnection,
    name: str,
    count: int,
    configs: Mapping[str, str],
    *,
    new_configs: Mapping[str, str] | None = None,
) -> None:
    """Create a topic, or change its settings if it is there; `new_configs` are for a new one."""
    topic = NewTopic(name, count, configs={**(new_configs or {}), **configs})
    outcome = (await TopicOperations(connection).create_topics([topic], raise_errors=False))[name]
    if not isinstance(outcome, KafkaError):
        print(f"Created {name} with {count} partition{'' if count == 1 else 's'}.")
        return
    if outcome.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
        raise outcome
    changes = [ConfigChange(*each) for each in configs.items()]
    if not changes:
        print(f"{name} was there.")
        return
    await ConfigOperations(connection).alter_configs(
        {ConfigResource(ResourceType.TOPIC, name): changes}
    )
    print(f"{name} was there: its settings are changed.")


async def list_groups(connection: ClusterConnection, *, as_json: bool) -> None:
    names = [topic.name for topic in await TopicOperations(connection).list_topics()]
    settings = await _settings(
        connection, names, [DELAY_MODE, RETRY_DELAYS, "retry.attempts", RETRY_GROUP, _TARGET]
    )
    retrying = sorted(name for name, each in settings.items() if each.get(DELAY_MODE) == RETRY_MODE)
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
    delays = settings[RETRY_DELAYS]
    return {
        "group": settings[RETRY_GROUP] or group_of(name),
        "retry_topic": name,
        "delays": delays,
        "attempts": int(settings["retry.attempts"]) or len(delays.split(",")),
        "dead_letter_topic": settings[_TARGET],
        "waiting": waiting,
    }
