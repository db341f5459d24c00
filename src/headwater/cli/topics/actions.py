"""What `headwater topics` does, once for both forms of its command line."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

import typer

from headwater.base.counted import counted
from headwater.base.errors import ErrorCode, KafkaError
from headwater.cli.options.choice import did_you_mean
from headwater.cli.options.topic_pattern import choose_topics
from headwater.cli.output.json_document import failure_fields, print_document
from headwater.cli.topics.partition_filter import PartitionFilter
from headwater.client.admin import NewTopic, TopicOperations, require_all
from headwater.client.connection.cluster_connection import ClusterConnection
from headwater.client.connection.cluster_metadata import TopicInfo
from headwater.client.errors import UnknownTopicError

if TYPE_CHECKING:
    from headwater.cli.cluster.partition_health import Moves

EXIT_FAILURE = 1


class TopicChoice(NamedTuple):
    """Which topics are meant."""

    pattern: str | None
    topic_id: str | None = None
    exclude_internal: bool = False
    if_exists: bool = False


async def create_topic(
    connection: ClusterConnection,
    topic: NewTopic,
    *,
    if_not_exists: bool = False,
    as_json: bool = False,
) -> None:
    outcome = "created"
    try:
        await TopicOperations(connection).create_topics([topic])
    except KafkaError as error:
        if not if_not_exists or error.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
            raise
        outcome = "exists"
    if as_json:
        print_document({"topics": [{"topic": topic.name, "outcome": outcome}]})
    elif outcome == "created":
        print(f"Created topic {topic.name}.")


async def list_topics(
    connection: ClusterConnection, choice: TopicChoice, *, as_json: bool = False
) -> None:
    topics = await _chosen(connection, choice)
    if as_json:
        from headwater.cli.topics.topic_json import topic_json

        moves = await _moves(connection)
        print_document({"topics": [topic_json(topic, moves) for topic in topics]})
        return
    for topic in topics:
        print(topic.name)


async def describe_topics(
    connection: ClusterConnection,
    choice: TopicChoice,
    partition_filter: PartitionFilter,
    *,
    as_json: bool = False,
) -> None:
    # Only describing needs these, and `headwater topics list` should not wait for them.
    from headwater.cli.topics.description import describe_topic
    from headwater.cli.topics.topic_json import described_json
    from headwater.client.admin import ConfigOperations, ConfigResource, ResourceType

    chosen = [topic.name for topic in await _chosen(connection, choice, must_exist=True)]
    topics = require_all(await TopicOperations(connection).describe_topics(chosen))
    resources = {name: ConfigResource(ResourceType.TOPIC, name) for name in chosen}
    configs = require_all(
        await ConfigOperations(connection).describe_configs(list(resources.values()))
    )
    moves = await _moves(connection)
    live_brokers = frozenset(connection.metadata.brokers)
    described = [(topics[name], configs[resources[name]]) for name in chosen]
    if as_json:
        documents = [
            described_json(topic, entries, partition_filter, live_brokers, moves)
            for topic, entries in described
        ]
        print_document({"topics": [document for document in documents if document]})
        return
    for topic, entries in described:
        for line in describe_topic(topic, entries, partition_filter, live_brokers, moves):
            print(line)


async def _moves(connection: ClusterConnection) -> Moves:
    """The partitions on their way to other brokers; none where a cluster does not tell."""
    from headwater.cli.cluster.told import told
    from headwater.client.admin import ReassignmentOperations

    return await told(ReassignmentOperations(connection).list_partition_reassignments()) or {}


async def grow_topics(
    connection: ClusterConnection,
    choice: TopicChoice,
    partition_count: int,
    assignment: list[list[int]] | None,
    *,
    as_json: bool = False,
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
    grown = counted(partition_count, "partition")
    _report(outcomes, f"Topic {{}} now has {grown}.", "altered", as_json=as_json)


async def delete_topics(
    connection: ClusterConnection, choice: TopicChoice, *, as_json: bool = False
) -> None:
    chosen = await _chosen(connection, choice, must_exist=True)
    names = [topic.name for topic in chosen]
    outcomes = await TopicOperations(connection).delete_topics(names, raise_errors=False)
    _report(outcomes, "Deleted topic {}.", "deleted", as_json=as_json)


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
        hint = did_you_mean(choice.pattern or "", topics) or "."
        raise UnknownTopicError(
            f"There is no topic {choice.pattern!r}, nor one that matches it{hint}"
        )
    return found


def _with_id(topics: Iterable[TopicInfo], text: str) -> list[TopicInfo]:
    from headwater.base.ids import topic_id_from_text

    try:
        topic_id = topic_id_from_text(text)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--topic-id") from None
    return [topic for topic in topics if topic.topic_id == topic_id]


def _report(
    outcomes: Mapping[str, KafkaError | None], success: str, outcome: str, *, as_json: bool
) -> None:
    """A line for each topic; failures go to standard error and make the exit code 1."""
    failures = {name: error for name, error in outcomes.items() if error is not None}
    if as_json:
        entries = [
            {"topic": name, "outcome": outcome}
            if error is None
            else {"topic": name, "outcome": "failed", **failure_fields(error)}
            for name, error in outcomes.items()
        ]
        print_document({"topics": entries})
    else:
        for name in outcomes:
            if name not in failures:
                print(success.format(name))
    for error in failures.values():
        print(f"headwater: {error}", file=sys.stderr)
    if failures:
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
