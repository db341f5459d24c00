"""What `headwater topics` does, once for both forms of its command line."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import typer

from headwater.base.errors import ErrorCode, KafkaError
from headwater.cli.options.topic_pattern import choose_topics
from headwater.cli.topics.partition_filter import PartitionFilter
from headwater.client.admin import NewTopic, TopicOperations, require_all
from headwater.client.connection.cluster_connection import ClusterConnection
from headwater.client.connection.cluster_metadata import TopicInfo
from headwater.client.errors import UnknownTopicError

EXIT_FAILURE = 1


class TopicChoice(NamedTuple):
    """Which topics are meant."""

    pattern: str | None
    topic_id: str | None = None
    exclude_internal: bool = False
    if_exists: bool = False


async def create_topic(
    connection: ClusterConnection, topic: NewTopic, *, if_not_exists: bool = False
) -> None:
    try:
        await TopicOperations(connection).create_topics([topic])
    except KafkaError as error:
        if if_not_exists and error.code is ErrorCode.TOPIC_ALREADY_EXISTS:
            return
        raise
    print(f"Created topic {topic.name}.")


async def list_topics(connection: ClusterConnection, choice: TopicChoice) -> None:
    for topic in await _chosen(connection, choice):
        print(topic.name)


async def describe_topics(
    connection: ClusterConnection, choice: TopicChoice, partition_filter: PartitionFilter
) -> None:
    # Only describing needs these, and `headwater topics list` should not wait for them.
    from headwater.cli.topics.description import describe_topic
    from headwater.client.admin import ConfigOperations, ConfigResource, ResourceType

    chosen = [topic.name for topic in await _chosen(connection, choice, must_exist=True)]
    topics = require_all(await TopicOperations(connection).describe_topics(chosen))
    resources = {name: ConfigResource(ResourceType.TOPIC, name) for name in chosen}
    configs = require_all(
        await ConfigOperations(connection).describe_configs(list(resources.values()))
    )
    live_brokers = frozenset(connection.metadata.brokers)
    for name in chosen:
        entries = configs[resources[name]]
        for line in describe_topic(topics[name], entries, partition_filter, live_brokers):
            print(line)


async def grow_topics(
    connection: ClusterConnection,
    choice: TopicChoice,
    partition_count: int,
    assignment: list[list[int]] | None,
) -> None:
    """Let topics grow; an assignment names the brokers of all partitions, old ones too."""
    chosen = await _chosen(connection, choice, must_exist=True)
    added = {}
    if assignment is not None:
        added = {topic.name: assignment[len(topic.partitions) :] for topic in chosen}
    outcomes = await TopicOperations(connection).create_partitions(
        {topic.name: partition_count for topic in chosen},
        assignments=added,
        raise_errors=False,
    )
    _report(outcomes, f"Topic {{}} has {partition_count} partitions now.")


async def delete_topics(connection: ClusterConnection, choice: TopicChoice) -> None:
    chosen = await _chosen(connection, choice, must_exist=True)
    names = [topic.name for topic in chosen]
    outcomes = await TopicOperations(connection).delete_topics(names, raise_errors=False)
    _report(outcomes, "Deleted topic {}.")


async def _chosen(
    connection: ClusterConnection, choice: TopicChoice, *, must_exist: bool = False
) -> list[TopicInfo]:
    topics = {topic.name: topic for topic in await TopicOperations(connection).list_topics()}
    if choice.exclude_internal:
        topics = {name: topic for name, topic in topics.items() if not topic.is_internal}
    if choice.topic_id is not None:
        found = _with_id(topics.values(), choice.topic_id)
    else:
        found = [topics[name] for name in choose_topics(topics, choice.pattern)]
    names_something = choice.pattern is not None or choice.topic_id is not None
    if must_exist and names_something and not found and not choice.if_exists:
        if choice.topic_id is not None:
            raise UnknownTopicError(f"There is no topic with the id {choice.topic_id}.")
        raise UnknownTopicError(f"There is no topic {choice.pattern!r}, nor one that matches it.")
    return found


def _with_id(topics: Iterable[TopicInfo], text: str) -> list[TopicInfo]:
    from headwater.base.ids import topic_id_from_text

    try:
        topic_id = topic_id_from_text(text)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--topic-id") from None
    return [topic for topic in topics if topic.topic_id == topic_id]


def _report(outcomes: Mapping[str, KafkaError | None], success: str) -> None:
    """A line for each topic; failures go to standard error and make the exit code 1."""
    has_failed = False
    for name, outcome in outcomes.items():
        if outcome is None:
            print(success.format(name))
        else:
            has_failed = True
            print(f"headwater: {outcome}", file=sys.stderr)
    if has_failed:
        raise typer.Exit(EXIT_FAILURE)


def parse_assignment(text: str | None) -> list[list[int]] | None:
    """`0:1,1:0` as the brokers of each partition."""
    if text is None:
        return None
    try:
        return [[int(broker) for broker in part.split(":")] for part in text.split(",")]
    except ValueError:
        raise typer.BadParameter(
            f"{text!r} should be broker numbers, as in 0:1,1:0", param_hint="--replica-assignment"
        ) from None


def parse_configs(assignments: Iterable[str]) -> dict[str, str]:
    """Each `name=value`, by name."""
    configs = {}
    for assignment in assignments:
        name, separator, value = assignment.partition("=")
        if not separator or not name.strip():
            raise typer.BadParameter(f"{assignment!r} should be NAME=VALUE", param_hint="--config")
        configs[name.strip()] = value.strip()
    return configs
