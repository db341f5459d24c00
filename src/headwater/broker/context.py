"""What handlers see of the broker, and of the request they answer."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING

from headwater.base.background_tasks import BackgroundTasks
from headwater.base.clocks import Clock
from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.loop_timer import LoopTimer
from headwater.base.threads import RunInThread
from headwater.broker.metrics.broker_metrics import BrokerMetrics
from headwater.broker.requests.api_table import ApiTable
from headwater.broker.requests.tasks import RequestTasks
from headwater.broker.settings.broker_settings import BrokerSettings
from headwater.cluster.controller.controller import Controller
from headwater.cluster.image.image import ClusterImage
from headwater.cluster.member import ClusterMember
from headwater.net.connection import Connection
from headwater.replication.partition.partitions import Partitions
from headwater.replication.waiting.parked_requests import ParkedRequests
from headwater.storage.directories.log_directories import LogDirectories
from headwater.wire.api_keys import ApiKey

if TYPE_CHECKING:
    from headwater.broker.access.broker_proof import BrokerProof
    from headwater.broker.fetch.sessions import FetchSessions
    from headwater.broker.peers.channels import BrokerChannels
    from headwater.broker.topics.coordinator_topics import CoordinatorTopics
    from headwater.broker.transactions.partitions import TransactionPartitions
    from headwater.broker.transactions.producer_ids import ProducerIds
    from headwater.broker.wiring.replication import Replication
    from headwater.coordinator.group.shard import GroupShard
    from headwater.coordinator.runtime import CoordinatorRuntime
    from headwater.coordinator.txn.transaction_shard import TransactionShard


@dataclass(slots=True)
class BrokerContext:
    """The parts of one running broker, put together by `server`."""

    node_id: int
    cluster_id: str
    proof: BrokerProof
    settings: BrokerSettings
    member: ClusterMember
    partitions: Partitions
    parked: ParkedRequests
    directories: LogDirectories
    replication: Replication
    fetch_sessions: FetchSessions
    producer_ids: ProducerIds
    metrics: BrokerMetrics
    tasks: RequestTasks
    background: BackgroundTasks
    timer: LoopTimer
    clock: Clock
    random: random.Random
    run_in_thread: RunInThread
    #: The event loop's clock, in seconds.
    loop_time: Callable[[], float]
    api_table: ApiTable
    # The coordinators ask brokers, this one among them, so they are made when the rest is there.
    coordinator_topics: CoordinatorTopics = field(init=False)
    groups: CoordinatorRuntime[GroupShard] = field(init=False)
    transactions: CoordinatorRuntime[TransactionShard] = field(init=False)
    #: The partitions that transactions write to, as their coordinators know them.
    transaction_partitions: TransactionPartitions = field(init=False)
    #: The way to this and all other brokers.
    channels: BrokerChannels = field(init=False)

    @property
    def image(self) -> ClusterImage:
        """The cluster as this broker knows it now."""
        return self.member.image

    @property
    def controller(self) -> Controller:
        """The controller, where this broker is it; else KafkaError NOT_CONTROLLER."""
        return self.member.controller


class RequestContext:
    """One request: who asks, in which version, and the broker that answers."""

    __slots__ = (
        "_started_s",
        "api_key",
        "api_version",
        "broker",
        "client_id",
        "connection",
        "correlation_id",
        "refusal",
    )

    def __init__(
        self,
        broker: BrokerContext,
        *,
        api_key: ApiKey,
        api_version: int,
        client_id: str | None,
        correlation_id: int,
        connection: Connection,
    ) -> None:
        self.broker = broker
        self.api_key = api_key
        self.api_version = api_version
        self.client_id = client_id
        self.correlation_id = correlation_id
        self.connection = connection
        #: Why the controller, which is another broker, could not be asked.
        self.refusal: KafkaError | None = None
        self._started_s = perf_counter()

    @property
    def is_broker(self) -> bool:
        """Whether a broker of this cluster asks."""
        return self.connection.identity.is_broker

    def check_speaks_for(self, broker_id: int) -> None:
        """Raise unless the broker with that id asks."""
        if self.connection.identity.broker_id != broker_id:
            raise KafkaError(
                ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
                f"{self.connection} has not proven to be broker {broker_id}.",
            )

    @property
    def controller(self) -> Controller:
        """The controller, where this broker is it; else a KafkaError for all that was asked."""
        if self.refusal is not None:
            raise self.refusal
        return self.broker.controller

    def record_answer(self) -> None:
        """The answer is given: metrics take note of how long it took."""
        # Not the loop's clock: that stands still while the loop works.
        self.broker.metrics.record_request(self.api_key, perf_counter() - self._started_s)

    def record_error(self, code: ErrorCode) -> None:
        """A part of the answer is an error."""
        self.broker.metrics.record_error(self.api_key, code)
