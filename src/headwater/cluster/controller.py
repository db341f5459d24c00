"""The controller: the one broker that changes what the cluster agrees on.

A change has four steps: the request is checked against the image; it is written to the metadata
store, fenced by the controller's epoch; those who subscribed do what follows from it, such as
creating logs; the new image takes the place of the old. Only then is the change reported done.
Changes happen one after the other and each to its end, whoever goes away meanwhile.

Use: `start`; open the logs that the image names; `subscribe`; `finish_interrupted_deletions`; serve
clients; `close`.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from headwater.base.clocks import Clock
from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.randomness import SeededRandom
from headwater.cluster.broker_registration import register_broker
from headwater.cluster.change_turns import ChangeTurns
from headwater.cluster.cluster_identity import establish_cluster_id
from headwater.cluster.config_changes import plan_config_change
from headwater.cluster.controller_election import elect_controller
from headwater.cluster.controller_writes import ControllerWrites
from headwater.cluster.image import (
    BrokerInfo,
    ClusterImage,
    ConfigImage,
    ConfigResource,
    ResourceKind,
)
from headwater.cluster.image_change import ImageEdits
from headwater.cluster.image_loader import load_image
from headwater.cluster.image_publisher import ImagePublisher, Subscriber
from headwater.cluster.new_topic import ControllerOptions, CreatedTopic, NewPartitions, NewTopic
from headwater.cluster.node_locations import DELETED_TOPICS, PRODUCER_ID_BLOCK
from headwater.cluster.producer_ids import BLOCK_SIZE, plan_block
from headwater.cluster.store.metadata_store import MetadataStore
from headwater.cluster.topic_changes import TopicChanges


class Controller:
    """One broker's part in running the cluster: it registers, and leads if it is elected."""

    def __init__(
        self,
        store: MetadataStore,
        broker: BrokerInfo,
        options: ControllerOptions,
        clock: Clock,
        random: SeededRandom,
    ) -> None:
        self._store = store
        self._options = options
        self._clock = clock
        self._random = random
        self._publisher = ImagePublisher()
        self._turns = ChangeTurns()
        self._writes: ControllerWrites | None = None
        self._topics: TopicChanges | None = None
        #: This broker; with its epoch once it is started.
        self.broker = broker

    @property
    def image(self) -> ClusterImage:
        """The current state of the cluster."""
        return self._publisher.image

    @property
    def is_active(self) -> bool:
        """Whether this broker was elected."""
        return self._writes is not None

    async def start(self, cluster_id: str | None = None) -> None:
        """Register the broker, elect it if there is no controller, and load the image.

        A new cluster gets `cluster_id`, or one that is drawn. KafkaError if the store belongs to
        another cluster or if the broker's id is taken, CorruptNodeError if it cannot be read.
        """
        await establish_cluster_id(self._store, cluster_id, self._random.uuid)
        now_ms = self._clock.wall_ms()
        self.broker = await register_broker(self._store, self.broker, now_ms)
        election = await elect_controller(self._store, self.broker.broker_id, now_ms)
        self._publisher.image = await load_image(self._store)
        if election.won:
            writes = ControllerWrites(self._store, election.epoch, election.epoch_version)
            self._writes = writes
            self._topics = TopicChanges(writes, self._publisher, self._options, self._random)

    def subscribe(self, subscriber: Subscriber) -> None:
        """Have `subscriber` called with every change, and awaited before it is reported done."""
        self._publisher.subscribe(subscriber)

    async def finish_interrupted_deletions(self) -> None:
        """Delete what was being deleted when the last controller stopped.

        Such topics are in the image until then. It is done before clients are served, when the
        subscribers are ready to delete the logs.
        """
        topics = self._topics
        marked = await self._store.children(DELETED_TOPICS)
        if marked and topics is not None:
            await self._turns.run(lambda: topics.finish_interrupted(marked))

    async def create_topics(
        self, requests: Sequence[NewTopic], validate_only: bool = False
    ) -> dict[str, CreatedTopic | KafkaError]:
        """Create topics, or only find out whether it could be done; an answer for each name."""
        topics, _ = self._elected()
        return await self._turns.run(lambda: topics.create(requests, validate_only=validate_only))

    async def create_partitions(
        self, requests: Sequence[NewPartitions], validate_only: bool = False
    ) -> dict[str, KafkaError | None]:
        """Add partitions to topics; for each name the reason why not, or None."""
        topics, _ = self._elected()
        return await self._turns.run(lambda: topics.grow(requests, validate_only=validate_only))

    async def delete_topics(
        self, targets: Iterable[str | uuid.UUID]
    ) -> dict[str | uuid.UUID, KafkaError | None]:
        """Delete topics by name or id; for each of them the reason why not, or None."""
        topics, _ = self._elected()
        return await self._turns.run(lambda: topics.delete(targets))

    async def set_configs(
        self, resource: ConfigResource, configs: Mapping[str, str], version: int | None = None
    ) -> int:
        """Replace all that is set for a resource, and return the new version.

        `version` is that of `image.config(resource)` from which the new configs were made:
        ConfigConflictError if somebody changed them since. SettingError if a topic cannot have
        them; what brokers can have is for the caller to check.
        """
        _, writes = self._elected()

        async def change() -> int:
            if resource.kind is ResourceKind.TOPIC:
                self._options.validate_topic_configs(configs)
            await writes.multi([plan_config_change(resource, configs, version, self.image)])
            new_version = self.image.config(resource).version + 1
            edits = ImageEdits()
            edits.configs[resource] = ConfigImage(MappingProxyType(dict(configs)), new_version)
            await self._publisher.publish(edits.apply(self.image))
            return new_version

        return await self._turns.run(change)

    async def allocate_producer_ids(self, count: int = BLOCK_SIZE) -> range:
        """Ids that nobody else in the cluster has or will ever get."""
        _, writes = self._elected()

        async def change() -> range:
            last_block = await writes.read(PRODUCER_ID_BLOCK)
            block, operation = plan_block(last_block, self.broker.broker_id, count)
            await writes.multi([operation])
            return range(block.first, block.last + 1)

        return await self._turns.run(change)

    async def close(self) -> None:
        """Let the changes under way finish; the session with the store is its owner's to close."""
        await self._turns.finish()

    def _elected(self) -> tuple[TopicChanges, ControllerWrites]:
        if self._topics is None or self._writes is None:
            controller_id = self.image.controller_id
            raise KafkaError(
                ErrorCode.NOT_CONTROLLER, f"The controller is broker {controller_id}, not this one."
            )
        return self._topics, self._writes
