"""The controller: the one broker that changes what the cluster agrees on.

A `Controller` exists from its election until another takes over or its broker stops. It loads what
the metadata store holds into the publisher's image, sets right what was left over or has changed
while there was no controller, and from then on is the only one to change the store.

A change is checked and planned against the image, written to the store (every write on condition
that this is still the controller), put into the image and announced to the brokers. Changes happen
one after the other and each to its end, whoever goes away meanwhile. What a client asked for is
reported done when the brokers have followed it, or one of them took too long; nobody waits for that
with the next change.

What happens to brokers is noticed by a watch on `/brokers/ids`, which sets a flag; a task then
takes its turn like everyone else, compares who is there with the image, and works off all that is
different as one change.

Use: `start`; the other methods; `close`. All of them raise KafkaError NOT_CONTROLLER once it is
over.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final, TypeVar

from headwater.base.background_tasks import BackgroundTasks
from headwater.base.clocks import Clock
from headwater.base.counted import counted
from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import TopicPartition
from headwater.base.randomness import SeededRandom
from headwater.cluster.brokers.changes import UNCLEAN_ELECTION_SETTING, BrokerChanges
from headwater.cluster.controller.change_turns import ChangeTurns
from headwater.cluster.controller.config_changes import is_gone, plan_config_change
from headwater.cluster.controller.election import Election
from headwater.cluster.controller.producer_ids import BLOCK_SIZE, plan_block
from headwater.cluster.controller.publisher import Publisher
from headwater.cluster.controller.writes import ControllerWrites
from headwater.cluster.image.change import ImageChange, ImageEdits
from headwater.cluster.image.image import (
    NO_CONFIGS,
    ClusterImage,
    ConfigImage,
    ConfigResource,
    ResourceKind,
)
from headwater.cluster.image.loader import load_image
from headwater.cluster.node_documents import CorruptNodeError
from headwater.cluster.node_locations import DELETED_TOPICS, PRODUCER_ID_BLOCK
from headwater.cluster.partitions.alteration_queue import AlterationQueue
from headwater.cluster.partitions.changes import PartitionChanges
from headwater.cluster.partitions.elections import ElectionType
from headwater.cluster.partitions.leader_moves import Outcome
from headwater.cluster.reassignment.changes import MIN_ISR_SETTING, Reassignments
from headwater.cluster.reassignment.requests import Reassignment
from headwater.cluster.store.metadata_store import MetadataStore
from headwater.cluster.topics.changes import DeletionAnswers, TopicChanges
from headwater.cluster.topics.completion import complete_topics
from headwater.cluster.topics.new_topic import (
    ControllerOptions,
    CreatedTopic,
    NewPartitions,
    NewTopic,
)
from headwater.wire.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse

_logger = logging.getLogger(__name__)

T = TypeVar("T")

#: Settings that partitions may wait for: to have a leader, or to end a move.
_WAITED_FOR: Final = frozenset({UNCLEAN_ELECTION_SETTING, MIN_ISR_SETTING})


class Controller:
    """The active controller of a cluster."""

    def __init__(
        self,
        store: MetadataStore,
        election: Election,
        publisher: Publisher,
        options: ControllerOptions,
        clock: Clock,
        random: SeededRandom,
        on_deposed: Callable[[], None],
        tasks: BackgroundTasks,
    ) -> None:
        """`on_deposed` is called, once, when this one finds out that its time is over."""
        self._store = store
        self._election = election
        self._publisher = publisher
        self._options = options
        self._clock = clock
        self._random = random
        self._background = tasks
        self._turns = ChangeTurns()
        self._writes = ControllerWrites(store, election.epoch, election.epoch_version, on_deposed)
        self._reassignments = Reassignments(
            publisher, lambda: self._brokers.shutting_down, options.min_insync_replicas
        )
        self._partitions = PartitionChanges(
            self._writes, publisher, clock, self._reassignments.next_steps
        )
        self._brokers = BrokerChanges(store, self._writes, publisher, self._partitions, options)
        self._alterations = AlterationQueue(self._turns, publisher, self._brokers, self._partitions)
        self._loaded_topics: TopicChanges | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._is_closed = False

    @property
    def image(self) -> ClusterImage:
        """The current state of the cluster, as the store has it."""
        return self._publisher.image

    @property
    def election_count(self) -> int:
        """How often a partition got a leader from this controller."""
        return self._partitions.election_count

    @property
    def election_seconds(self) -> float:
        """How long all these elections took together."""
        return self._partitions.election_seconds

    @property
    def unclean_election_count(self) -> int:
        """How often that leader was not in sync."""
        return self._partitions.unclean_election_count

    @property
    def shutting_down(self) -> frozenset[int]:
        """The brokers that are about to stop: they lead nothing new."""
        return self._brokers.shutting_down

    async def start(self) -> None:
        """Load the image, set right what must be, announce it, and watch the brokers from then on.

        Topics whose deletion was interrupted are in the image at first; when the brokers have
        heard of it, the deletion goes on. CorruptNodeError if not even the cluster's id can be
        read.
        """
        has_marked_topics = await self._turns.run(self._load)
        following = self._brokers.follow(self._turns)
        self._tasks.append(self._background.start("controller's look at brokers", following))
        if has_marked_topics:
            deleting = self._finish_deletions()
            self._tasks.append(self._background.start("controller's deletions", deleting))

    async def _load(self) -> bool:
        """Whether there are topics whose deletion was interrupted."""
        begun_ms = self._clock.monotonic_ms()
        with self._writes.kafka_errors():
            image = await load_image(self._store)
            marked = await self._store.children(DELETED_TOPICS)
        self._publisher.image = replace(
            image,
            controller_id=self._election.controller_id,
            controller_epoch=self._election.epoch,
            version=1,
        )
        active = self._brokers.active
        topics = TopicChanges(
            self._store, self._writes, self._publisher, self._options, self._random, active
        )
        await topics.take_over(marked)
        self._publisher.image = await complete_topics(self._writes, self.image)
        version = self.image.version
        await self._brokers.work_off()
        if self.image.version == version:
            self._publisher.announce(ImageChange(self.image))
        self._loaded_topics = topics
        _logger.info(
            "The controller of epoch %d has loaded %s and %s in %d ms.",
            self._election.epoch,
            counted(len(self.image.brokers), "broker"),
            counted(len(self.image.topics), "topic"),
            self._clock.monotonic_ms() - begun_ms,
        )
        return bool(marked)

    # -- topics and configurations ---------------------------------------------------------------

    async def create_topics(
        self, requests: Sequence[NewTopic], validate_only: bool = False
    ) -> dict[str, CreatedTopic | KafkaError]:
        """Create topics, or only find out whether it could be done; an answer for each name."""
        return await self._change(
            lambda: self._topics.create(requests, validate_only=validate_only)
        )

    async def create_partitions(
        self, requests: Sequence[NewPartitions], validate_only: bool = False
    ) -> dict[str, KafkaError | None]:
        """Add partitions to topics; for each name the reason why not, or None."""
        return await self._change(lambda: self._topics.grow(requests, validate_only=validate_only))

    async def delete_topics(self, targets: Iterable[str | uuid.UUID]) -> DeletionAnswers:
        """Delete topics by name or id; for each of them the reason why not, or None."""

        async def doom_and_remove() -> DeletionAnswers:
            doomed = await self._change(lambda: self._topics.doom(targets))
            errors = await self._turns.run(lambda: self._topics.remove_leftovers())
            return doomed.answers | {
                target: errors.get(name) for target, name in doomed.names.items()
            }

        return await self._turns.see_through(doom_and_remove())

    async def set_configs(
        self, resource: ConfigResource, configs: Mapping[str, str], version: int | None = None
    ) -> int:
        """Replace all that is set for a resource, and return the new version.

        `version` is that of `image.config(resource)` from which the new configs were made:
        ConfigConflictError if somebody changed them since. KafkaError if the resource cannot have
        them; whoever asks may have checked them too, but need not be one of us.
        """

        async def change() -> int:
            operations = plan_config_change(resource, configs, version, self.image)
            present = self.image.config(resource)
            if resource.kind is ResourceKind.TOPIC:
                self._options.validate_topic_configs(configs, present.configs)
            else:
                self._options.validate_configs(resource, configs, present.configs)
            if not operations:
                return present.version
            await self._writes.multi(operations)
            edits = ImageEdits()
            if is_gone(resource, configs):
                new_version = NO_CONFIGS
                edits.configs[resource] = None
            else:
                new_version = present.version + 1
                edits.configs[resource] = ConfigImage(MappingProxyType(dict(configs)), new_version)
            self._publisher.announce(edits.apply(self.image))
            if _WAITED_FOR.intersection((*configs, *present.configs)):
                # Partitions may be waiting for exactly this.
                self._brokers.look_again()
            return new_version

        return await self._change(change)

    async def allocate_producer_ids(self, broker_id: int, count: int = BLOCK_SIZE) -> range:
        """Ids that nobody else in the cluster has or will ever get."""

        async def change() -> range:
            last_block = await self._writes.read(PRODUCER_ID_BLOCK)
            try:
                block, operation = plan_block(last_block, broker_id, count)
            except CorruptNodeError as error:
                # Whatever was given out must not be given out again: so nobody gets any.
                _logger.error("%s No producer ids are given out.", error)
                raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, str(error)) from error
            await self._writes.multi([operation])
            return range(block.first, block.last + 1)

        return await self._change(change)

    # -- partitions ------------------------------------------------------------------------------

    async def alter_partitions(self, request: AlterPartitionRequest) -> AlterPartitionResponse:
        """Change ISRs as their leaders ask for it."""
        self._check_open()
        return await self._alterations.alter(request)

    async def shut_down_broker(self, broker_id: int, broker_epoch: int) -> int:
        """Controlled shutdown: hand over what a broker leads, and take it out of the ISRs.

        Returns how many partitions it still leads because no other member of their ISR is alive;
        those with one replica are not counted.
        """
        return await self._change(lambda: self._brokers.shut_down(broker_id, broker_epoch))

    async def unregister_broker(self, broker_id: int) -> None:
        """Forget what is left of a broker that was stopped for good."""
        await self._change(lambda: self._brokers.unregister(broker_id))

    async def elect_leaders(
        self, election_type: ElectionType, partitions: Iterable[TopicPartition] | None
    ) -> Outcome:
        """Hold elections for partitions, or with None for all that need one.

        By partition, why nobody was elected, or None; of all partitions, those are left out that
        needed no election.
        """
        return await self._change(lambda: self._brokers.hold_elections(election_type, partitions))

    async def reassign_partitions(
        self, wanted: Sequence[Reassignment], *, factor_may_change: bool = True
    ) -> Outcome:
        """Begin to move partitions to other brokers, or cancel that; by partition, why not.

        A move that has begun goes on by itself, and under other controllers too.
        """
        return await self._change(
            lambda: self._reassignments.alter(
                wanted, self._partitions, factor_may_change=factor_may_change
            )
        )

    async def throttle_reassignments(self, throttle: int) -> Outcome:
        """Give all moves that are under way this throttle, in bytes a second; 0 is none."""
        return await self._change(lambda: self._reassignments.throttle(throttle, self._partitions))

    # -- how changes happen ----------------------------------------------------------------------

    async def close(self) -> None:
        """Let the changes under way finish; after that nothing is written any more."""
        self._is_closed = True
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        await self._turns.finish()
        self._writes.close()

    @property
    def _topics(self) -> TopicChanges:
        if self._loaded_topics is None:
            raise KafkaError(ErrorCode.NOT_CONTROLLER, "The controller could not start.")
        return self._loaded_topics

    def _check_open(self) -> None:
        if self._is_closed:
            raise KafkaError(ErrorCode.NOT_CONTROLLER, "This broker is no longer the controller.")

    async def _change(self, change: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Let a change take its turn, and then wait until the brokers have followed it."""

        async def take_turn() -> tuple[T, int]:
            before = self.image.version
            result = await change()
            return result, self.image.version if self.image.version != before else 0

        async def whole() -> T:
            result, version = await self._turns.run(take_turn)
            if version:
                await self._publisher.followed(version)
            return result

        self._check_open()
        return await self._turns.see_through(whole())

    async def _finish_deletions(self) -> None:
        try:
            await self._publisher.followed(self.image.version)
            await self._change(lambda: self._topics.doom_marked())
            await self._turns.run(lambda: self._topics.remove_leftovers())
        except KafkaError as error:
            _logger.warning("A deletion that was interrupted is not finished yet: %s", error)
