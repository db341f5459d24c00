"""What is not there, with the name that was probably meant.

A cluster is asked for its names only after it has said that it does not have one.
"""

from __future__ import annotations

from collections.abc import Collection

from headwater.cli.options.choice import did_you_mean
from headwater.client.admin import GroupOperations, TopicOperations, require_all
from headwater.client.connection.cluster_connection import ClusterConnection
from headwater.client.connection.cluster_metadata import TopicInfo
from headwater.client.errors import UnknownGroupError, UnknownTopicError


async def describe_topics(
    connection: ClusterConnection, names: Collection[str]
) -> dict[str, TopicInfo]:
    """The topics of these names; raises `UnknownTopicError` with a suggestion."""
    outcomes = await TopicOperations(connection).describe_topics(names)
    for name, outcome in outcomes.items():
        if isinstance(outcome, UnknownTopicError):
            raise await nearest_topic(connection, name, outcome)
    return require_all(outcomes)


async def nearest_topic(
    connection: ClusterConnection, name: str, error: UnknownTopicError
) -> UnknownTopicError:
    """The error, with the topic that was probably meant."""
    known = [topic.name for topic in await TopicOperations(connection).list_topics()]
    return UnknownTopicError(_with_hint(str(error), name, known))


async def nearest_group(
    connection: ClusterConnection, name: str, error: UnknownGroupError
) -> UnknownGroupError:
    """The error, with the group that was probably meant."""
    known = [group.group_id for group in await GroupOperations(connection).list_groups()]
    return UnknownGroupError(_with_hint(str(error), name, known))


def _with_hint(sentence: str, name: str, known: Collection[str]) -> str:
    hint = did_you_mean(name, known)
    return f"{sentence.rstrip('.')}{hint}" if hint else sentence
