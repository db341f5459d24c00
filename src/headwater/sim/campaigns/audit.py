"""A seeded campaign against the audit: the cluster's campaign, with what it tells compared.

Buckets are short, so that leaders publish while brokers are in trouble. In the healed world all is
published in the end, and the counts are those of the logs, by bucket: also of a partition whose
only replica in sync lost its power, since what was counted and is gone is told as lost.
"""

from __future__ import annotations

import asyncio
from typing import Final

from headwater.audit.rows import AUDIT_TOPIC, Row, decode_row
from headwater.base.ids import TopicPartition
from headwater.broker.context import BrokerContext
from headwater.sim.campaigns.cluster import HEALED_TIME_MAX_S, ClusterCampaign
from headwater.sim.campaigns.cluster_trouble import ClusterChoices
from headwater.sim.checkers.audit_counts import check_audit_counts
from headwater.sim.cluster_world import ClusterWorld
from headwater.sim.histories.history import PropertyViolated
from headwater.storage.partition_log import PartitionLog
from headwater.wire.records import decode_batch, iter_batch_headers

BUCKET_MS: Final = 1_000
_READ_BYTES: Final = 1 << 20


class AuditCampaign(ClusterCampaign):
    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.compared_count = 0
        #: How many brokers published rows: with one alone, leaders did not follow each other.
        self.host_count = 0

    def make_world(self, seed: int) -> ClusterWorld:
        choices = ClusterChoices(seed)
        choices.settings |= {
            "audit.bucket.ms": str(BUCKET_MS),
            "audit.topic.num.partitions": "2",
            "audit.topic.replication.factor": "3",
        }
        return choices.world(seed)

    async def _check_end(self) -> None:
        await super()._check_end()
        end_s = self.world.loop.time() + HEALED_TIME_MAX_S
        brokers = [host.server.context for host in self.world.hosts]
        while not _is_published(brokers):
            if self.world.loop.time() > end_s:
                raise PropertyViolated(
                    f"in a healed world the audit is published within {HEALED_TIME_MAX_S:g} s"
                )
            await asyncio.sleep(0.5)
        rows = [row for broker in brokers for row in _led_rows(broker)]
        logs = _led_logs(brokers, self.partitions)
        check_audit_counts(rows, logs, BUCKET_MS)
        self.compared_count += sum(log.high_watermark > 0 for log in logs.values())
        self.host_count = len({row["host"] for row in rows})


def _is_published(brokers: list[BrokerContext]) -> bool:
    for broker in brokers:
        broker.audit_publisher.look()
    return all(broker.audit_publisher.behind_offsets == 0 for broker in brokers)


def _led_logs(
    brokers: list[BrokerContext], wanted: list[TopicPartition]
) -> dict[TopicPartition, PartitionLog]:
    found: dict[TopicPartition, PartitionLog] = {}
    for broker in brokers:
        for partition in wanted:
            led = broker.partitions.find(*partition)
            if led is not None and led.is_leader:
                found[partition] = led.log
    return found


def _led_rows(broker: BrokerContext) -> list[Row]:
    """What stands in the partitions of `__audit` that a broker leads."""
    rows: list[Row] = []
    for partition in broker.partitions.of_topic(AUDIT_TOPIC).values():
        log = partition.log
        offset = log.log_start_offset
        while partition.is_leader and offset < log.high_watermark:
            region = log.read(offset, _READ_BYTES, min_one_batch=True).region
            if region is None:
                break
            data = memoryview(region.read())
            for position, header in iter_batch_headers(data):
                offset = header.next_offset
                for record in decode_batch(data[position : position + header.size_bytes]):
                    row = None if record.value is None else decode_row(bytes(record.value))
                    if row is not None:
                        rows.append(row)
    return rows
