"""The audit, put together: its shards, its way to other brokers, and who publishes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from headwater.audit.commit_counts import OutsideCommits
from headwater.audit.publisher import AuditEnvironment, AuditOptions, AuditPublisher
from headwater.audit.rows import AUDIT_TOPIC
from headwater.audit.shard import Published, Stretch
from headwater.base.errors import ErrorCode, KafkaError
from headwater.broker.context import BrokerContext
from headwater.broker.topics.audit_topic import ensure_audit_topic
from headwater.cluster.image.image import NO_LEADER
from headwater.coordinator.key_hash import partition_for
from headwater.wire.cluster_messages.publish_audit import (
    AuditRecordData,
    PublishAuditRequest,
    PublishAuditResponse,
    PublishAuditSource,
)

_ANSWER_TIMEOUT_S: Final = 30.0


class BrokerAuditWay:
    """The broker's `AuditWay`: whoever leads a partition of `__audit` is asked, this one too."""

    def __init__(self, context: BrokerContext) -> None:
        self._context = context

    async def ensure_topic(self) -> int:
        return await ensure_audit_topic(self._context)

    def partition_of(self, source: str, partition_count: int) -> int:
        return partition_for(source, partition_count)

    async def publish(self, partition: int, stretches: Sequence[Stretch]) -> dict[str, Published]:
        request = PublishAuditRequest(
            partition_index=partition,
            sources=[
                PublishAuditSource(
                    source=stretch.source,
                    from_offset=stretch.from_offset,
                    to_offset=stretch.to_offset,
                    records=[
                        AuditRecordData(key=key, value=value) for key, value in stretch.records
                    ],
                )
                for stretch in stretches
            ],
        )
        response: PublishAuditResponse = await self._context.channels.send(
            self._leader_of(partition), request, _ANSWER_TIMEOUT_S
        )
        if response.error_code:
            raise KafkaError(ErrorCode.from_wire(response.error_code), response.error_message or "")
        return {
            each.source: Published(each.published_offset, each.leader_epoch)
            for each in response.sources
        }

    def _leader_of(self, partition: int) -> int:
        topic = self._context.image.topics.get(AUDIT_TOPIC)
        leader = NO_LEADER
        if topic is not None and partition < len(topic.partitions):
            leader = topic.partitions[partition].leader
        if leader == NO_LEADER:
            raise KafkaError(
                ErrorCode.LEADER_NOT_AVAILABLE, f"Nobody leads {AUDIT_TOPIC}-{partition}."
            )
        return leader


def _outside_commits(context: BrokerContext, number: int) -> OutsideCommits:
    shard = context.groups.shard(number)
    return {} if shard is None else shard.offsets.take_outside_commits()


def make_audit_publisher(context: BrokerContext) -> AuditPublisher:
    """Who counts and publishes what this broker leads."""
    settings = context.settings
    return AuditPublisher(
        AuditEnvironment(
            partitions=context.partitions,
            way=BrokerAuditWay(context),
            clock=context.clock,
            run_in_thread=context.run_in_thread,
            tasks=context.background,
            host=f"broker-{context.node_id}",
            take_outside_commits=lambda number: _outside_commits(context, number),
        ),
        AuditOptions(
            is_enabled=lambda: settings.boolean("audit.enable"),
            bucket_ms=lambda: settings.integer("audit.bucket.ms"),
            retention_ms=lambda: settings.integer("audit.retention.ms"),
        ),
    )
