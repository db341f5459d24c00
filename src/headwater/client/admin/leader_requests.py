"""Requests that only a partition's leader can answer, for partitions of any number of leaders.

Each attempt looks up the leaders, asks all of them at once about their partitions, and puts the
answers together. A topic that the metadata do not have ends with that; a leader that does not know
a partition may just not have heard yet.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection
from typing import TypeVar

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import TopicPartition
from headwater.client.admin.outcomes import Outcomes, settle
from headwater.client.connection.cluster_connection import ClusterConnection
from headwater.client.connection.cluster_metadata import NO_LEADER
from headwater.client.errors import UnknownBrokerError, UnknownTopicError
from headwater.client.kafka_errors import LeaderNotAvailableError

Value = TypeVar("Value")
AskLeader = Callable[[int, list[TopicPartition]], Awaitable[Outcomes[TopicPartition, Value]]]


async def ask_leaders(
    connection: ClusterConnection,
    partitions: Collection[TopicPartition],
    ask_leader: AskLeader[Value],
    what: str,
    *,
    timeout_s: float | None = None,
) -> Outcomes[TopicPartition, Value]:
    """`ask_leader` for each leader of `partitions` with those that it leads."""
    missing: Outcomes[TopicPartition, Value] = {}

    async def attempt(pending: list[TopicPartition]) -> Outcomes[TopicPartition, Value]:
        await connection.refresh(list(dict.fromkeys(tp.topic for tp in pending)))
        outcomes: Outcomes[TopicPartition, Value] = {}
        by_leader: dict[int, list[TopicPartition]] = {}
        for topic_partition in pending:
            try:
                leader_id = connection.metadata.leader_of(*topic_partition)
            except UnknownTopicError as error:
                missing[topic_partition] = error
                outcomes[topic_partition] = _FINAL
            except KafkaError as error:
                outcomes[topic_partition] = error
            else:
                if leader_id == NO_LEADER:
                    outcomes[topic_partition] = LeaderNotAvailableError(
                        f"{topic_partition} has no leader."
                    )
                else:
                    by_leader.setdefault(leader_id, []).append(topic_partition)
        for answered in await asyncio.gather(
            *(_ask(ask_leader, leader_id, led) for leader_id, led in by_leader.items())
        ):
            outcomes.update(answered)
        return outcomes

    outcomes = await settle(
        connection, partitions, attempt, what, timeout_s=timeout_s, unknown_topic_is_final=False
    )
    return outcomes | missing


async def _ask(
    ask_leader: AskLeader[Value], leader_id: int, partitions: list[TopicPartition]
) -> Outcomes[TopicPartition, Value]:
    try:
        return await ask_leader(leader_id, partitions)
    except UnknownBrokerError as error:
        # It has just left, so others will lead.
        gone = LeaderNotAvailableError(str(error))
        return dict.fromkeys(partitions, gone)
    except KafkaError as error:
        return dict.fromkeys(partitions, error)


# Stands for the error in `missing`, whose own code would count as one that passes.
_FINAL = KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION)
