"""Asks the brokers of all replicas, a stretch at a time, until they differ or all is compared."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final, NamedTuple

from headwater.base.errors import KafkaError
from headwater.base.ids import TopicPartition
from headwater.cli.audit.replicas.comparison import Difference, common_bounds, first_difference
from headwater.cli.options.nearest_name import describe_topics
from headwater.client.connection.cluster_connection import ClusterConnection
from headwater.client.errors import UnknownTopicError, refusal
from headwater.client.kafka_errors import UnsupportedVersionError
from headwater.wire.cluster_messages.describe_log_checksums import (
    DescribeLogChecksumsRequest,
    DescribeLogChecksumsResponse,
)

#: The offsets of a run as long as all is well; where runs differ, batch by batch is looked at.
_RUN_OFFSETS: Final = 10_000

Answers = dict[int, DescribeLogChecksumsResponse]


class ComparedPartition(NamedTuple):
    partition: int
    #: The brokers whose replicas were compared.
    replicas: tuple[int, ...]
    from_offset: int
    to_offset: int
    batch_count: int
    difference: Difference | None
    #: Why brokers could not be asked.
    unasked: dict[int, str]


async def compare_topic(
    connection: ClusterConnection, topic: str, partition: int | None
) -> list[ComparedPartition]:
    """All partitions of a topic, or one; raises `KafkaError`."""
    info = (await describe_topics(connection, [topic]))[topic]
    chosen = [each for each in info.partitions if partition in (None, each.partition)]
    if not chosen:
        raise UnknownTopicError(f"{topic} has no partition {partition}.")
    return [
        await _Comparison(connection, TopicPartition(topic, each.partition)).run(each.replicas)
        for each in chosen
    ]


class _Comparison:
    def __init__(self, connection: ClusterConnection, partition: TopicPartition) -> None:
        self._connection = connection
        self._partition = partition

    async def run(self, replicas: Sequence[int]) -> ComparedPartition:
        bounds: Answers = {}
        unasked: dict[int, str] = {}
        found = await asyncio.gather(
            *(self._ask(broker_id, -1, -1, 1) for broker_id in replicas), return_exceptions=True
        )
        for broker_id, outcome in zip(replicas, found, strict=True):
            if isinstance(outcome, UnsupportedVersionError):
                raise UnsupportedVersionError(
                    "These brokers do not tell what their replicas hold: only Headwater's do."
                )
            if isinstance(outcome, KafkaError):
                unasked[broker_id] = str(outcome)
            elif isinstance(outcome, BaseException):
                raise outcome
            else:
                bounds[broker_id] = outcome
        asked = tuple(bounds)
        if not asked:
            return ComparedPartition(self._partition.partition, (), 0, 0, 0, None, unasked)
        start, end = common_bounds(bounds)
        offset, batch_count = start, 0
        difference: Difference | None = None
        while offset < end and difference is None:
            answers = await self._ask_all(asked, offset, end, _RUN_OFFSETS)
            later = max(answer.log_start_offset for answer in answers.values())
            if later > offset:
                # Retention went on meanwhile: what it took is not compared.
                offset = later
                continue
            difference = first_difference({key: each.runs for key, each in answers.items()})
            batch_count += sum(run.batch_count for run in answers[asked[0]].runs)
            # Where they differ they may stop at different ones too.
            offset = min(answer.next_offset for answer in answers.values())
        if difference is not None:
            difference = await self._narrow(asked, difference)
        return ComparedPartition(
            self._partition.partition, asked, start, end, batch_count, difference, unasked
        )

    async def _narrow(self, asked: Sequence[int], difference: Difference) -> Difference:
        """The first batch that differs."""
        offset = difference.from_offset
        while offset < difference.to_offset:
            answers = await self._ask_all(asked, offset, difference.to_offset, 1)
            found = first_difference({key: each.runs for key, each in answers.items()})
            if found is not None:
                return found
            offset = min(answer.next_offset for answer in answers.values())
        return difference

    async def _ask_all(
        self, asked: Sequence[int], from_offset: int, to_offset: int, run_offsets: int
    ) -> Answers:
        answers = await asyncio.gather(
            *(self._ask(broker_id, from_offset, to_offset, run_offsets) for broker_id in asked)
        )
        return dict(zip(asked, answers, strict=True))

    async def _ask(
        self, broker_id: int, from_offset: int, to_offset: int, run_offsets: int
    ) -> DescribeLogChecksumsResponse:
        request = DescribeLogChecksumsRequest(
            topic=self._partition.topic,
            partition_index=self._partition.partition,
            from_offset=from_offset,
            to_offset=to_offset,
            run_offsets=run_offsets,
        )
        answer = await self._connection.ask(request, DescribeLogChecksumsResponse, broker_id)
        if answer.error_code:
            raise refusal(
                answer.error_code, answer.error_message, f"{self._partition} on {broker_id}"
            )
        return answer
