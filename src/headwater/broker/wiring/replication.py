"""A broker's part in replication, put together: its followers, and the ISRs of what it leads.

Partitions tell what happens to them through `events`. A partition that another broker leads is
fetched from there by `fetchers`; of those that this broker leads, `isr_changes` asks the controller
for other in-sync replicas, and a periodic check finds out who does not keep up. What waits in them
for its time is delivered by `delays`.
"""

from __future__ import annotations

from collections.abc import Callable

from headwater.base.background_tasks import BackgroundTasks
from headwater.base.clocks import Clock
from headwater.base.threads import RunInThread
from headwater.broker.context import BrokerContext
from headwater.broker.settings.broker_settings import BrokerSettings
from headwater.delay.dead_letters.moves import DeadLetterMoves
from headwater.delay.delays import Delays
from headwater.delay.partition_delays import DelayEnvironment
from headwater.replication.following.fetchers import ReplicaFetchers
from headwater.replication.following.options import FetcherOptions
from headwater.replication.leading.isr_changes import IsrChanges
from headwater.replication.leading.isr_checks import IsrChecks
from headwater.replication.partition.events import PartitionEventHub
from headwater.replication.partition.partition import Partition
from headwater.replication.partition.partitions import Partitions
from headwater.replication.throttling.throttle import Throttle
from headwater.replication.throttling.throttles import ReplicationThrottles
from headwater.replication.waiting.parked_requests import ParkedRequests
from headwater.storage.compaction.cleaner import Cleaner


class Replication:
    """Made before the partitions are; `start` when there are some, `close` before their logs."""

    def __init__(
        self,
        node_id: int,
        settings: BrokerSettings,
        clock: Clock,
        parked: ParkedRequests,
        cleaner: Cleaner,
        tasks: BackgroundTasks,
        run_in_thread: RunInThread,
        moves: DeadLetterMoves,
        context: Callable[[], BrokerContext],
    ) -> None:
        """The context is asked for when it is needed: it holds what is made after this."""

        def broker_epoch() -> int:
            return context().member.broker.broker_epoch

        self._settings = settings
        self._tasks = tasks
        self._checks: IsrChecks | None = None
        self.isr_changes = IsrChanges(
            lambda request, limit_s: context().channels.send_to_controller(request, limit_s),
            node_id=node_id,
            broker_epoch=broker_epoch,
            tasks=tasks,
        )
        self.throttles = ReplicationThrottles(
            *(_throttle(side, settings, clock) for side in ("leader", "follower"))
        )
        self.fetchers = ReplicaFetchers(
            node_id=node_id,
            broker_epoch=broker_epoch,
            connect=lambda broker_id: context().channels.open(broker_id),
            options=lambda: FetcherOptions.from_settings(settings.values),
            clock=clock,
            tasks=tasks,
            on_truncated=cleaner.log_truncated,
            throttles=self.throttles,
        )
        self.events = PartitionEventHub(parked)
        self.events.add(self.fetchers)
        self.events.add(_CleanedLogs(cleaner))
        self.delays = Delays(DelayEnvironment(clock, run_in_thread, tasks, moves))
        self.events.add(self.delays)

    def start(self, partitions: Partitions) -> None:
        self._settings.subscribe(
            ["num.replica.fetchers"], lambda _: self.fetchers.settings_changed()
        )
        self._checks = IsrChecks(
            partitions,
            lambda: self._settings.integer("replica.lag.time.max.ms"),
            self._tasks,
        )
        self._checks.start()

    async def close(self) -> None:
        if self._checks is not None:
            await self._checks.close()
        await self.delays.close()
        await self.isr_changes.close()
        await self.fetchers.close()


def _throttle(side: str, settings: BrokerSettings, clock: Clock) -> Throttle:
    return Throttle(
        lambda: settings.integer(f"{side}.replication.throttled.rate"),
        clock,
        window_count=settings.integer("replication.quota.window.num"),
        window_ms=settings.integer("replication.quota.window.size.seconds") * 1000,
    )


class _CleanedLogs:
    """Lets the cleaner forget how far it was with a log that goes."""

    def __init__(self, cleaner: Cleaner) -> None:
        self._cleaner = cleaner

    def role_changed(self, partition: Partition) -> None:
        """Compaction is the same for leaders and followers."""

    def removed(self, partition: Partition) -> None:
        self._cleaner.log_removed(partition.topic_partition)
