"""Produce (key 0): append record batches to partitions.

The batches stay where the connection received them: their header is checked, offset and epoch are
patched in place, and the buffer goes to the file. A batch that begins a transaction in its
partition waits for the transaction's coordinator first, see `produce.transaction`. With acks=0
there is no answer; an error closes the connection, which is all that such a producer can notice.
ApiVersions shows versions from 0 on, see `api_versions`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from headwater.base.errors import KafkaError
from headwater.broker.handlers.cards.all_cards import CARDS
from headwater.broker.produce.answer import ProduceAnswer
from headwater.broker.produce.appends import ProduceAppends
from headwater.broker.requests.api_handler import ExchangeHandler
from headwater.replication.partition.options import ACKS_ALL
from headwater.replication.partition.partition import Partition
from headwater.wire.api_keys import ApiKey
from headwater.wire.codec import decode
from headwater.wire.messages.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from headwater.wire.single_produce import (
    FLEXIBLE_SINCE,
    TOPIC_IDS_SINCE,
    SingleProduce,
    encode_single_answer,
    read_single_produce,
)

if TYPE_CHECKING:
    from headwater.broker.context import RequestContext
    from headwater.net.exchange import Exchange

_ANSWERED_ACKS: Final = (1, ACKS_ALL)


def handle(exchange: Exchange, context: RequestContext) -> None:
    header = context.header
    if header.api_version >= FLEXIBLE_SINCE and _handle_single(exchange, context):
        return
    request, _ = decode(ProduceRequest, exchange.frame, header.api_version, header.body_position)
    answer = ProduceAnswer(exchange, context, acks=request.acks, timeout_ms=request.timeout_ms)
    appends = ProduceAppends(exchange, context, request, answer)
    response = appends.append_all()
    if appends.preparing:
        context.broker.tasks.spawn(appends.finish_later(response))
    else:
        answer.finish(response)


def _handle_single(exchange: Exchange, context: RequestContext) -> bool:
    """The short way, for one ordinary batch; false, and nothing done, if it is something else."""
    broker, header = context.broker, context.header
    single = read_single_produce(exchange.frame, header.body_position, header.api_version)
    if single is None or single.acks not in _ANSWERED_ACKS:
        return False
    if header.api_version >= TOPIC_IDS_SINCE:
        partition = broker.partitions.find_by_id(single.topic, single.partition)
    else:
        partition = broker.partitions.find(single.topic_name, single.partition)
    if partition is None or partition.is_brokers_own:
        return False
    acks = single.acks
    failure = None
    try:
        base_offset = partition.append_plain(
            single.records, acks=acks, now_ms=broker.clock.wall_ms()
        )
    except KafkaError as error:
        base_offset, failure = -1, error
    if base_offset is None:
        return False
    log = partition.log
    if failure is not None or not partition.is_safe_at_once(log.log_end_offset, acks):
        _finish_single(exchange, context, single, partition, base_offset, failure)
        return True
    exchange.answer(
        (encode_single_answer(header.correlation_id, single, base_offset, log.log_start_offset),)
    )
    context.record_answer()
    return True


def _finish_single(
    exchange: Exchange,
    context: RequestContext,
    single: SingleProduce,
    partition: Partition,
    base_offset: int,
    failure: KafkaError | None,
) -> None:
    """What the short way began and cannot answer yet is waited for and answered as all others."""
    produce = ProduceAnswer(exchange, context, acks=single.acks, timeout_ms=single.timeout_ms)
    answer = PartitionProduceResponse(
        index=single.partition,
        base_offset=base_offset,
        log_start_offset=partition.log_start_offset if failure is None else -1,
    )
    try:
        if failure is not None:
            raise failure
        produce.await_safety(partition, partition.log_end_offset, answer)
    except KafkaError as error:
        produce.refuse(answer, error, partition)
    topic = TopicProduceResponse(partition_responses=[answer])
    if context.api_version >= TOPIC_IDS_SINCE:
        topic.topic_id = partition.topic_id
    else:
        topic.name = partition.topic_partition.topic
    produce.finish(ProduceResponse(responses=[topic]))


API = ExchangeHandler(CARDS[ApiKey.PRODUCE], handle)
