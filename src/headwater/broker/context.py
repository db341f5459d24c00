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
from headwater.base.printable import shortened
from headwater.base.threads import RunInThread
from headwater.broker.metrics.broker_metrics import BrokerMetrics
from headwater.broker.metrics.response_errors import error_codes
from headwater.broker.requests.api_table import ApiTable
from headwater.broker.requests.tasks import RequestTasks
from headwater.broker.settings.broker_settings import BrokerSettings
from headwater.cluster.controller.controller import Controller
from headwater.cluster.image.image import ClusterImage
from headwater.cluster.member import ClusterMember
from headwater.net.connection import Connection
from headwater.net.endpoint import join_address
from headwater.replication.partition.partitions import Partitions
from headwater.replication.waiting.parked_requests import ParkedRequests
from headwater.storage.directories.log_directories import LogDirectories
from headwater.wire.api_keys import ApiKey
from headwater.wire.frames import RequestHeader
from headwater.wire.schema import Message

if TYPE_CHECKING:
    from headwater.audit.publisher import AuditPublisher
    from headwater.audit.shard import AuditShard
    from headwater.broker.access.broker_proof import BrokerProof
    from headwater.broker.fetch.sessions import FetchSessions
    from headwater.broker.peers.channels import BrokerChannels
    from headwater.broker.peers.departed_brokers import DepartedBrokers
    from headwater.broker.telemetry.client_telemetry import ClientTelemetry
    from headwater.broker.topics.coordinator_topics import CoordinatorTopics
    from headwater.broker.transactions.partitions import TransactionPartitions
    from headwater.broker.transactions.producer_ids import ProducerIds
    from headwater.broker.wiring.replication import Replication
    from headwater.coordinator.group.shard import GroupShard
    from headwater.coordinator.runtime import CoordinatorRuntime
    from headwater.coordinator.txn.transaction_shard import TransactionShard
    from headwater.delay.delays import Delays


@dataclass(slots=True)
class BrokerContext:
    """The parts of one running broker, put together by `server`."""

    node_id: int
    cluster_id: str
    proof: BrokerProof
    settings: BrokerSettings
    member: ClusterMember
    departed: DepartedBrokers
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
    audit: CoordinatorRuntime[AuditShard] = field(init=False)
    #: The partitions that transactions write to, as their coordinators know them.
    transaction_partitions: TransactionPartitions = field(init=False)
    #: The way to this and all other brokers.
    channels: BrokerChannels = field(init=False)
    #: The messages that wait in the partitions which this broker leads.
    delays: Delays = field(init=False)
    #: Who counts what this broker leads, for `audit`.
    audit_publisher: AuditPublisher = field(init=False)
    #: Who takes the metrics that clients push, if anybody does.
    telemetry: ClientTelemetry | None = None

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

    __slots__ = ("_started_s", "broker", "connection", "header", "refusal")

    def __init__(
        self, broker: BrokerContext, header: RequestHeader, connection: Connection
    ) -> None:
        self.broker = broker
        self.header = header
        self.connection = connection
        #: Why the controller, which is another broker, could not be asked.
        self.refusal: KafkaError | None = None
        self._started_s = perf_counter()

    # Produce and Fetch, which are hot, read the header itself: a property costs a call.
    @property
    def api_key(self) -> ApiKey:
        return ApiKey(self.header.api_key)

    @property
    def api_version(self) -> int:
        return self.header.api_version

    @property
    def client_id(self) -> str | None:
        return self.header.client_id

    @property
    def correlation_id(self) -> int:
        return self.header.correlation_id

    @property
    def is_broker(self) -> bool:
        """Whether a broker of this cluster asks."""
        return self.connection.identity.is_broker

    @property
    def asker(self) -> str:
        """Who asks, for people who read the log; it may begin a sentence."""
        client_id = shortened(self.client_id or "")
        return f"Client {client_id!r} at {join_address(*self.connection.peer[:2])}"

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

    def record_response(self, response: Message) -> None:
        """This answer is given: metrics take note of how long it took, and of errors in it."""
        self.record_answer()
        for code in error_codes(response):
            self.broker.metrics.record_error(self.header.api_key, code)

    def record_answer(self) -> None:
        """An answer is given, and whoever made it has counted its errors."""
        # Not the loop's clock: that stands still while the loop works.
        self.broker.metrics.record_request(self.header.api_key, perf_counter() - self._started_s)

    def record_error(self, code: ErrorCode) -> None:
        """An error that `record_response` does not find, since it is not given the answer."""
        self.broker.metrics.record_error(self.header.api_key, code)
