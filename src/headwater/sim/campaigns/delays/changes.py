"""Somebody who asks leaders to cancel, reschedule and deliver at once what waits."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Final

from headwater.base.errors import KafkaError
from headwater.delay.waiting import ChangeKind, DelayChange, MessageName
from headwater.replication.partition.partition import Partition
from headwater.sim.broker_host import BrokerHost
from headwater.sim.campaigns.delays.watch import DelayWatch
from headwater.sim.clients.delay_writer import SENDER_IDS
from headwater.sim.cluster_world import ClusterWorld
from headwater.sim.disk.faults import SimulatedCrash
from headwater.sim.histories.delay_history import DelayHistory

DELAYS_MS: Final = (0, 300, 3_000, 8_000, 90_000)


class DelayChanges:
    def __init__(
        self, world: ClusterWorld, random: Random, watch: DelayWatch, delays: DelayHistory
    ) -> None:
        self._world = world
        self._random = random
        self._watch = watch
        self._delays = delays
        #: Changes that a client would have been told of.
        self.acknowledged_count = 0

    async def run(self) -> None:
        while True:
            await asyncio.sleep(self._random.random() * 0.5)
            partition = self._random.choice(list(self._watch.partitions))
            host, led = self._watch.leader(partition)
            if host is not None and led is not None and not host.is_paused:
                await self._change(host, led)

    async def _change(self, host: BrokerHost, led: Partition) -> None:
        random, partition = self._random, led.topic_partition
        kind = random.choice(list(ChangeKind))
        sender_id = random.choice(SENDER_IDS)
        name = MessageName(sender_id=sender_id)
        if not sender_id:
            waiting = list(self._watch.partitions[partition].model.waiting)
            if not waiting:
                return
            name = MessageName(random.choice(waiting))
        now_ms = host.clock.wall_ms()
        due_ms = now_ms + int(random.choice(DELAYS_MS) * random.random())
        earliest_ms = self._world.clock.wall_ms()
        if kind is ChangeKind.RESCHEDULE:
            earliest_ms += due_ms - now_ms
        named = self._delays.named(partition, name.offset, sender_id)
        for message in named:
            if kind is ChangeKind.CANCEL:
                message.may_be_cancelled = True
            elif message.due_ms is not None:
                message.due_ms = min(message.due_ms, earliest_ms)
        epoch, life = led.leader_epoch, host.life_count
        try:
            deliveries = host.server.context.delays.of(led)
            change = DelayChange(kind, name, due_ms)
            (changed,) = host.run(lambda: deliveries.change([change], acks=-1, now_ms=now_ms))
        except (KafkaError, SimulatedCrash):
            return
        if not changed.offsets:
            return
        if await self._is_safe(host, led, epoch, life, changed.end_offset):
            self.acknowledged_count += 1
            watched = self._watch.partitions[partition]
            watched.acknowledged_end = max(watched.acknowledged_end, changed.end_offset)
            if kind is ChangeKind.CANCEL:
                for message in self._delays.asked.values():
                    if message.partition == partition and message.offset in changed.offsets:
                        message.is_cancelled = True

    async def _is_safe(
        self, host: BrokerHost, led: Partition, epoch: int, life: int, end_offset: int
    ) -> bool:
        """Wait as a handler does; whether the change would be acknowledged."""
        for _ in range(200):
            if host.life_count != life or not host.serves or led.leader_epoch != epoch:
                return False
            try:
                if led.is_acknowledged(end_offset, durably=False):
                    return led.has_enough_in_sync
            except KafkaError:
                return False
            await asyncio.sleep(0.02)
        return False
