"""Topics with some of their partitions on a command line: `--topic orders:0,1 --topic payments`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import typer

from headwater.base.ids import TopicPartition
from headwater.cli.options.nearest_name import describe_topics
from headwater.client.connection.cluster_connection import ClusterConnection


class TopicScope(NamedTuple):
    """A topic, and those of its partitions that are meant; None for all."""

    topic: str
    partitions: tuple[int, ...] | None = None


def parse_topic_scopes(texts: Iterable[str]) -> list[TopicScope]:
    """Each `topic` or `topic:0,1`."""
    return [_parse(text) for text in texts]


def _parse(text: str) -> TopicScope:
    topic, separator, numbers = text.partition(":")
    if not separator and topic:
        return TopicScope(topic)
    try:
        partitions = tuple(dict.fromkeys(int(number) for number in numbers.split(",")))
    except ValueError:
        partitions = ()
    if not topic or not partitions or min(partitions) < 0:
        raise typer.BadParameter(
            f"{text!r} should be a topic, or a topic with partitions as in orders:0,1",
            param_hint="--topic",
        )
    return TopicScope(topic, partitions)


async def find_scoped(
    connection: ClusterConnection, scopes: Sequence[TopicScope]
) -> list[TopicPartition]:
    """The partitions that are meant; the cluster is asked only where a topic has no numbers."""
    whole = [scope.topic for scope in scopes if scope.partitions is None]
    described = await describe_topics(connection, whole)
    chosen: dict[TopicPartition, None] = {}
    for topic, partitions in scopes:
        if partitions is None:
            partitions = tuple(found.partition for found in described[topic].partitions)
        chosen.update((TopicPartition(topic, number), None) for number in partitions)
    return sorted(chosen)
