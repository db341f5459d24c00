"""The machines of a consumer, the connection that they share, and the driver that runs them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection

from headwater.client.connection.coordinator_cache import CoordinatorCache
from headwater.client.connection.metadata_upkeep import MetadataUpkeep
from headwater.client.consumer.fetching.fetcher import Fetcher
from headwater.client.consumer.fetching.missing_topics import MissingTopics
from headwater.client.consumer.fetching.subscription_state import SubscriptionState
from headwater.client.consumer.membership.group import GroupParts
from headwater.client.consumer.metrics import ConsumerMetrics
from headwater.client.consumer.options import ConsumerOptions
from headwater.client.consumer.polling.failures import Failures
from headwater.client.consumer.polling.fetch_buffer import FetchBuffer
from headwater.client.consumer.positions.positions import Positions
from headwater.client.fetch.corrupt_batches import CorruptBatches
from headwater.client.machines.ask import Machine
from headwater.client.machines.driver import Driver
from headwater.client.settings.connection_settings import make_connection, retry_policy


class ConsumerMachines:
    """Made on the loop that owns all of it. `notify` lets a poll that waits look again."""

    def __init__(self, options: ConsumerOptions, notify: Callable[[], None]) -> None:
        self.connection = make_connection(
            options.values,
            options.environment,
            timeout_s=options.seconds("default.api.timeout.ms"),
            fetches_in_thread=options.is_threaded,
        )
        policy, generator = retry_policy(options.values), self.connection.generator
        metadata = self.connection.metadata
        check_crc = options.values.boolean("check.crcs")
        self.coordinators = CoordinatorCache()
        self.subscription = SubscriptionState()
        self.metrics = ConsumerMetrics(asyncio.get_running_loop().time())
        self.buffer = FetchBuffer(
            options.deserializers,
            check_crc=check_crc,
            corrupt=CorruptBatches.of_settings(options.values),
        )
        self.failures = Failures(notify)
        self.upkeep = MetadataUpkeep(
            metadata,
            max_age_s=options.seconds("metadata.max.age.ms"),
            policy=policy,
            generator=generator,
            allow_auto_creation=options.values.boolean("allow.auto.create.topics"),
        )
        self.group = GroupParts(
            options,
            subscription=self.subscription,
            coordinators=self.coordinators,
            metadata=metadata,
            policy=policy,
            generator=generator,
            refresh=self.refresh,
            notify=notify,
        )
        self.missing = MissingTopics(
            self.subscription,
            metadata,
            self.upkeep,
            may_create=options.values.boolean("allow.auto.create.topics"),
            excludes_internal=options.values.boolean("exclude.internal.topics"),
        )
        request_timeout_s = options.seconds("request.timeout.ms")
        self.positions = Positions(
            self.subscription,
            self.buffer,
            metadata=metadata,
            upkeep=self.upkeep,
            committed=self.group.offset_commits,
            default_reset=options.offset_reset,
            isolation_level=options.isolation_level,
            request_timeout_s=request_timeout_s,
            policy=policy,
            generator=generator,
            wall_ms=options.environment.clock.wall_ms,
            failures=self.failures,
        )
        self.fetcher = Fetcher(
            self.subscription,
            self.buffer,
            metadata=metadata,
            upkeep=self.upkeep,
            limits=options.limits,
            isolation_level=options.isolation_level,
            default_reset=options.offset_reset,
            check_crc=check_crc,
            rack=options.values.text("client.rack"),
            preferred_lease_s=options.seconds("metadata.max.age.ms"),
            request_timeout_s=request_timeout_s,
            policy=policy,
            generator=generator,
            metrics=self.metrics,
            failures=self.failures,
            notify=notify,
        )
        # Positions ask for committed offsets, so whoever commits is asked after them.
        machines: list[Machine] = [
            self.upkeep,
            self.positions,
            *self.group.machines(),
            self.fetcher,
        ]
        self.driver = Driver(self.connection, self.coordinators, machines)

    def refresh(self, names: Collection[str]) -> None:
        """Ask for metadata anew, of these topics too."""
        self.upkeep.add_topics(names)
        self.upkeep.is_stale()
        self.driver.wake()
