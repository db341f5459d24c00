"""TxnOffsetCommit (key 28): a producer stores a group's offsets as part of its transaction.

The transaction's coordinator is asked first: the partition of `__consumer_offsets` must be part of
an open transaction of this producer, or else offsets could stay pending forever. If the transaction
ended while the answer was on its way, the offsets are refused.
"""

from __future__ import annotations

from collections.abc import Callable

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import TopicPartition
from headwater.broker.context import RequestContext
from headwater.broker.handlers.cards.all_cards import CARDS
from headwater.broker.requests.api_handler import ApiHandler
from headwater.coordinator.group.offsets.commit import Committer, NewOffset
from headwater.coordinator.group.shard import GroupShard
from headwater.coordinator.outcome import Change, ProducerIdentity
from headwater.coordinator.shard_log import as_coordinator_error
from headwater.storage.producers.transaction_verification import (
    Question,
    TransactionalBatch,
    check_verified,
)
from headwater.wire.api_keys import ApiKey
from headwater.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from headwater.wire.records import NO_SEQUENCE

_LOADING_SINCE = 2
_ABORTABLE_SINCE = 4
_ADDS_SINCE = 5
_TOPIC_IDS_SINCE = 6


async def handle(
    request: TxnOffsetCommitRequest, context: RequestContext
) -> TxnOffsetCommitResponse:
    image = context.broker.image
    by_id = context.api_version >= _TOPIC_IDS_SINCE
    unknown = ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    response = TxnOffsetCommitResponse()
    offsets: list[NewOffset] = []
    #: The answers that the coordinator gives, one for each offset.
    awaited: list[TxnOffsetCommitResponsePartition] = []
    for asked_topic in request.topics:
        name, topic_id = asked_topic.name, asked_topic.topic_id
        topic = image.topic_by_id(topic_id) if by_id else image.topics.get(name)
        answers: list[TxnOffsetCommitResponsePartition] = []
        response.topics.append(
            TxnOffsetCommitResponseTopic(name=name, topic_id=topic_id, partitions=answers)
        )
        for asked in asked_topic.partitions:
            answer = TxnOffsetCommitResponsePartition(partition_index=asked.partition_index)
            answers.append(answer)
            if topic is None:
                answer.error_code = unknown
            elif not 0 <= asked.partition_index < len(topic.partitions):
                answer.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            else:
                offset = NewOffset(
                    TopicPartition(topic.name, asked.partition_index),
                    asked.committed_offset,
                    asked.committed_leader_epoch,
                    asked.committed_metadata,
                    topic_id,
                )
                offsets.append(offset)
                awaited.append(answer)
    if offsets:
        codes = await _commit(request, offsets, context)
        for answer, code in zip(awaited, codes, strict=True):
            answer.error_code = code
    return response


async def _commit(
    request: TxnOffsetCommitRequest, offsets: list[NewOffset], context: RequestContext
) -> list[ErrorCode]:
    producer = ProducerIdentity(request.producer_id, request.producer_epoch)
    committer = Committer(
        request.member_id, request.group_instance_id, request.generation_id_or_member_epoch
    )
    try:
        if not request.group_id:
            raise KafkaError(ErrorCode.INVALID_GROUP_ID, "Only a group with a name has offsets.")
        check_open = await _join_transaction(request, producer, context)

        def commit(shard: GroupShard, now_ms: int) -> Change[list[ErrorCode]]:
            check_open()
            return shard.offsets.commit_in_transaction(
                request.group_id,
                committer,
                producer,
                offsets,
                now_ms,
                api_version=context.api_version,
            )

        return await context.broker.groups.write(request.group_id, commit)
    except KafkaError as error:
        return [_understood(error.code, context.api_version)] * len(offsets)


async def _join_transaction(
    request: TxnOffsetCommitRequest, producer: ProducerIdentity, context: RequestContext
) -> Callable[[], None]:
    """Raise unless the group's partition is part of the producer's transaction.

    What is returned raises too, if that has changed when the offsets are about to be written.
    """
    broker = context.broker
    adds = context.api_version >= _ADDS_SINCE
    if not adds and not broker.settings.boolean("transaction.partition.verification.enable"):
        return lambda: None
    topic, number = broker.groups.topic, broker.groups.partition_of(request.group_id)
    try:
        partition = broker.partitions.get(topic, number)
    except KafkaError as error:
        raise as_coordinator_error(error) from error
    batch = TransactionalBatch(producer.producer_id, producer.producer_epoch, NO_SEQUENCE)
    states = partition.log.producer_states
    verification = states.verifications.begin(batch, broker.clock.wall_ms())
    outcomes = await broker.transaction_partitions.ensure(
        request.transactional_id,
        producer,
        [partition.topic_partition],
        add=adds,
        questions=[Question(states, batch, verification)],
    )
    refusal = outcomes[partition.topic_partition]
    if refusal is not None:
        raise refusal
    return lambda: check_verified(states, batch, verification, starts_at_zero=False)


def _understood(code: ErrorCode, api_version: int) -> ErrorCode:
    """The error as clients of this version know it."""
    if code is ErrorCode.NETWORK_EXCEPTION:
        # Of the way to the transaction coordinator; this one makes every client simply try again.
        code = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    if code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS and api_version < _LOADING_SINCE:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    if code is ErrorCode.TRANSACTION_ABORTABLE and api_version < _ABORTABLE_SINCE:
        return ErrorCode.INVALID_TXN_STATE
    return code


API = ApiHandler(CARDS[ApiKey.TXN_OFFSET_COMMIT], handle)
