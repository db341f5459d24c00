"""What `headwater transactions` does, with the tables of Kafka's own tool."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final, NamedTuple

from headwater.base.ids import TopicPartition
from headwater.cli.output.plain_table import Column, Row, TableForm, print_rows
from headwater.client.admin import (
    ProducerDescription,
    ProducerOperations,
    TopicOperations,
    TransactionOperations,
    require_all,
)
from headwater.client.connection.cluster_connection import ClusterConnection
from headwater.client.kafka_errors import InvalidTxnStateError

_FORM: Final = TableForm(separator="\t", missing="None")
_LISTED: Final = (
    Column("TransactionalId", "transactional_id"),
    Column("Coordinator", "coordinator_id"),
    Column("ProducerId", "producer_id"),
    Column("TransactionState", "state"),
)
_DESCRIBED: Final = (
    Column("CoordinatorId", "coordinator_id"),
    Column("TransactionalId", "transactional_id"),
    Column("ProducerId", "producer_id"),
    Column("ProducerEpoch", "producer_epoch"),
    Column("TransactionState", "state"),
    Column("TransactionTimeoutMs", "timeout_ms"),
    Column("CurrentTransactionStartTimeMs", "start_ms"),
    Column("TransactionDurationMs", "duration_ms"),
    Column("TopicPartitions", "partitions"),
)
_PRODUCERS: Final = (
    Column("ProducerId", "producer_id"),
    Column("ProducerEpoch", "producer_epoch"),
    Column("LatestCoordinatorEpoch", "coordinator_epoch"),
    Column("LastSequence", "last_sequence"),
    Column("LastTimestamp", "last_timestamp_ms"),
    Column("CurrentTransactionStartOffset", "start_offset"),
)
_HANGING: Final = (
    Column("Topic", "topic"),
    Column("Partition", "partition"),
    Column("ProducerId", "producer_id"),
    Column("ProducerEpoch", "producer_epoch"),
    Column("CoordinatorEpoch", "coordinator_epoch"),
    Column("StartOffset", "start_offset"),
    Column("LastTimestamp", "last_timestamp_ms"),
    Column("Duration(min)", "duration_minutes"),
)


class ProducerEpochs(NamedTuple):
    """Whose transaction it is."""

    producer_id: int
    producer_epoch: int
    coordinator_epoch: int


async def list_transactions(
    connection: ClusterConnection,
    states: Sequence[str],
    duration_ms_min: int | None,
    transactional_id_pattern: str | None,
    *,
    as_json: bool,
) -> None:
    listed = await TransactionOperations(connection).list_transactions(
        states=states,
        duration_ms_min=duration_ms_min,
        transactional_id_pattern=transactional_id_pattern,
    )
    print_rows(_LISTED, [found._asdict() for found in listed], as_json=as_json, form=_FORM)


async def describe_transaction(
    connection: ClusterConnection, transactional_id: str, *, as_json: bool
) -> None:
    described = await TransactionOperations(connection).describe_transactions([transactional_id])
    found = require_all(described)[transactional_id]
    names = [str(key) for key in found.partitions]
    row: Row = found._asdict() | {
        "duration_ms": None if found.start_ms is None else _now_ms() - found.start_ms,
        "partitions": names if as_json else ",".join(names),
    }
    print_rows(_DESCRIBED, [row], as_json=as_json, form=_FORM)


async def describe_producers(
    connection: ClusterConnection, key: TopicPartition, broker_id: int | None, *, as_json: bool
) -> None:
    described = await ProducerOperations(connection).describe_producers([key], broker_id=broker_id)
    producers = require_all(described)[key]
    print_rows(
        _PRODUCERS,
        [_producer_row(producer) for producer in producers],
        as_json=as_json,
        form=_FORM,
    )


async def abort_transaction(
    connection: ClusterConnection,
    key: TopicPartition,
    start_offset: int | None,
    epochs: ProducerEpochs | None,
) -> None:
    admin = TransactionOperations(connection)
    if epochs is None:
        producers = require_all(await admin.describe_producers([key]))[key]
        starts = {producer.transaction_start_offset: producer for producer in producers}
        found = starts.get(-1 if start_offset is None else start_offset)
        if found is None or not found.is_in_transaction:
            raise InvalidTxnStateError(
                f"No open transaction of {key} begins at offset {start_offset}."
            )
        epochs = ProducerEpochs(found.producer_id, found.producer_epoch, found.coordinator_epoch)
    await admin.abort_transaction(
        key,
        producer_id=epochs.producer_id,
        producer_epoch=epochs.producer_epoch,
        coordinator_epoch=epochs.coordinator_epoch,
    )
    print(f"Aborted the transaction of producer {epochs.producer_id} in {key}.")


async def find_hanging(
    connection: ClusterConnection,
    topic: str | None,
    partition: int | None,
    broker_id: int | None,
    timeout_minutes_max: int,
    *,
    as_json: bool,
) -> None:
    partitions = await _searched(connection, topic, partition, broker_id)
    now_ms = _now_ms()
    hanging = await TransactionOperations(connection).find_hanging(
        partitions, now_ms=now_ms, timeout_ms_max=timeout_minutes_max * 60_000, broker_id=broker_id
    )
    rows: list[Row] = [
        _producer_row(found.producer)
        | {
            "topic": found.topic_partition.topic,
            "partition": found.topic_partition.partition,
            "duration_minutes": (now_ms - found.producer.last_timestamp_ms) // 60_000,
        }
        for found in hanging
    ]
    print_rows(_HANGING, rows, as_json=as_json, form=_FORM)


async def _searched(
    connection: ClusterConnection, topic: str | None, partition: int | None, broker_id: int | None
) -> list[TopicPartition]:
    """The partitions of a topic, or of all, that have a replica on the broker if one is named."""
    admin = TopicOperations(connection)
    if topic is None:
        topics = await admin.list_topics()
    else:
        topics = list(require_all(await admin.describe_topics([topic])).values())
    return [
        TopicPartition(found.name, each.partition)
        for found in topics
        for each in found.partitions
        if (partition is None or each.partition == found.partition(partition).partition)
        and (broker_id is None or broker_id in each.replicas)
    ]


def _producer_row(producer: ProducerDescription) -> dict[str, object]:
    start_offset = producer.transaction_start_offset if producer.is_in_transaction else None
    return producer._asdict() | {"start_offset": start_offset}


def _now_ms() -> int:
    return int(time.time() * 1000)
