"""The broker's coordinators, put together: their runtimes, topics, and ways to other brokers.

The state machines themselves are not imported for the start, which nobody should have to wait for,
but a moment later, in a thread; or when there is a partition of their topic to serve.
"""

from __future__ import annotations

import asyncio
import random
from importlib import import_module
from typing import TYPE_CHECKING, Final

from headwater.audit.rows import AUDIT_TOPIC
from headwater.broker.context import BrokerContext
from headwater.broker.peers.channels import BrokerChannels
from headwater.broker.topics.coordinator_topics import (
    OFFSETS_TOPIC,
    TRANSACTIONS_TOPIC,
    CoordinatorTopics,
)
from headwater.broker.transactions.markers import MarkerSender
from headwater.broker.transactions.partitions import TransactionPartitions
from headwater.cluster.image.change import ImageChange
from headwater.coordinator.group.group_log import GroupLog
from headwater.coordinator.group.latest_image import LatestImage
from headwater.coordinator.runtime import CoordinatorRuntime, RuntimeEnvironment
from headwater.coordinator.shard_log import ShardLogOptions
from headwater.coordinator.timers import Timers
from headwater.wire.records import Compression

if TYPE_CHECKING:
    from headwater.audit.shard import AuditShard
    from headwater.coordinator.group.shard import GroupShard
    from headwater.coordinator.txn.transaction_shard import TransactionShard

#: When a broker has started and clients do not keep it busy yet.
_IMPORT_DELAY_S: Final = 0.5


class Coordinators:
    """They become part of the context, and follow the cluster until they are closed."""

    def __init__(self, context: BrokerContext, random_source: random.Random) -> None:
        self._context = context
        self._random = random_source
        environment = RuntimeEnvironment(
            node_id=context.node_id,
            partitions=context.partitions,
            parked=context.parked,
            timer=context.timer,
            clock=context.clock,
            run_in_thread=context.run_in_thread,
            tasks=context.background,
        )
        integer = context.settings.integer
        offsets_options = ShardLogOptions(
            write_timeout_ms=lambda: integer("offsets.commit.timeout.ms"),
            load_bytes=lambda: integer("offsets.load.buffer.size"),
            compression=lambda: Compression(integer("offsets.topic.compression.codec")),
        )
        transactions_options = ShardLogOptions(
            write_timeout_ms=lambda: integer("request.timeout.ms"),
            load_bytes=lambda: integer("transaction.state.log.load.buffer.size"),
        )
        context.coordinator_topics = CoordinatorTopics(context)
        context.channels = BrokerChannels(context)
        context.groups = CoordinatorRuntime(
            OFFSETS_TOPIC, offsets_options, environment, self._new_group_shard
        )
        context.transactions = CoordinatorRuntime(
            TRANSACTIONS_TOPIC, transactions_options, environment, self._new_transaction_shard
        )
        context.audit = CoordinatorRuntime(
            AUDIT_TOPIC,
            ShardLogOptions(
                write_timeout_ms=lambda: integer("request.timeout.ms"),
                load_bytes=lambda: integer("offsets.load.buffer.size"),
            ),
            environment,
            _new_audit_shard,
        )
        context.transaction_partitions = TransactionPartitions(context)
        self._latest_image = LatestImage(lambda: context.image)
        self._markers = MarkerSender(context, self._latest_image)
        self._group_log = GroupLog()
        self._import_timer: asyncio.TimerHandle | None = None
        self._import: asyncio.Future[None] | None = None

    def start(self) -> None:
        """Load what this broker coordinates, and follow what changes."""
        context = self._context
        context.groups.start(context.image)
        context.transactions.start(context.image)
        context.audit.start(context.image)
        context.member.subscribe(self._on_image)
        loop = asyncio.get_running_loop()
        self._import_timer = loop.call_later(_IMPORT_DELAY_S, self._import_shards)

    def _import_shards(self) -> None:
        self._import = asyncio.ensure_future(self._context.run_in_thread(_import_state_machines))

    async def _on_image(self, change: ImageChange) -> None:
        self._latest_image.hear_of(change.image)
        self._context.channels.follow(change)
        await self._context.groups.on_image(change)
        await self._context.transactions.on_image(change)
        await self._context.audit.on_image(change)

    async def close(self) -> None:
        """Whoever waits hears that the coordinator is elsewhere."""
        if self._import_timer is not None:
            self._import_timer.cancel()
        if self._import is not None:
            await self._import
        self._context.groups.close()
        self._context.transactions.close()
        self._context.audit.close()
        await self._markers.close()
        await self._context.channels.close()

    def _new_group_shard(self, _number: int, _leader_epoch: int, timers: Timers) -> GroupShard:
        from headwater.coordinator.group.environment import GroupEnvironment
        from headwater.coordinator.group.shard import GroupShard

        context = self._context
        return GroupShard(
            GroupEnvironment(
                settings=context.settings,
                image=self._latest_image,
                timers=timers,
                random=self._random,
                log=self._group_log,
            )
        )

    def _new_transaction_shard(
        self, _number: int, leader_epoch: int, timers: Timers
    ) -> TransactionShard:
        from headwater.coordinator.txn.transaction_environment import TransactionEnvironment
        from headwater.coordinator.txn.transaction_shard import TransactionShard

        context = self._context
        return TransactionShard(
            TransactionEnvironment(
                settings=context.settings,
                timers=timers,
                markers=self._markers.deliver,
                coordinator_epoch=leader_epoch,
            )
        )


def _new_audit_shard(_number: int, _leader_epoch: int, _timers: Timers) -> AuditShard:
    from headwater.audit.shard import AuditShard

    return AuditShard()


def _import_state_machines() -> None:
    import_module("headwater.coordinator.group.shard")
    import_module("headwater.coordinator.txn.transaction_shard")
