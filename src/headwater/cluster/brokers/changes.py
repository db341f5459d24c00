"""Follows the brokers that come and go, and does what that means for partitions.

Who is there is read from `/brokers/ids`, and compared with the image by id and epoch: a broker with
another epoch than before has failed and come back. All that is different since the last time is one
change. What becomes of a partition is decided in `failures`; what a broker that is about to
stop hands over, in `leader_moves`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Iterable, Mapping
from typing import Final

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import TopicPartition
from headwater.base.printable import listed
from headwater.cluster.brokers.failures import BrokerTurnover
from headwater.cluster.brokers.registration import ReturnMark, load_present_brokers
from headwater.cluster.brokers.unregistration import config_resource, plan_unregistration
from headwater.cluster.controller.change_turns import ChangeTurns
from headwater.cluster.controller.publisher import Publisher
from headwater.cluster.controller.writes import ControllerWrites
from headwater.cluster.image.change import ImageEdits
from headwater.cluster.image.image import BrokerInfo, PartitionImage
from headwater.cluster.node_documents import CorruptNodeError
from headwater.cluster.node_locations import unclean_broker_path
from headwater.cluster.partitions.changes import PartitionChanges
from headwater.cluster.partitions.elections import ElectionType
from headwater.cluster.partitions.leader_moves import Outcome, plan_elections, plan_shutdown
from headwater.cluster.store.metadata_store import Delete, MetadataStore, WatchEvent
from headwater.cluster.topics.new_topic import ControllerOptions

_logger = logging.getLogger(__name__)

#: Before trying again what the store could not do.
RETRY_PAUSE_S: Final = 1.0

UNCLEAN_ELECTION_SETTING: Final = "unclean.leader.election.enable"


class BrokerChanges:
    """What the controller knows of brokers beyond the image, and does when they change."""

    def __init__(
        self,
        store: MetadataStore,
        writes: ControllerWrites,
        publisher: Publisher,
        partitions: PartitionChanges,
        options: ControllerOptions,
    ) -> None:
        self._store = store
        self._writes = writes
        self._publisher = publisher
        self._partitions = partitions
        self._options = options
        self._news = asyncio.Event()
        #: The brokers that are about to stop, with their epochs.
        self._shutting_down: dict[int, int] = {}

    @property
    def shutting_down(self) -> frozenset[int]:
        return frozenset(self._shutting_down)

    def active(self) -> frozenset[int]:
        """The live brokers without those that are about to stop, unless all of them are."""
        live = self._publisher.image.brokers.keys()
        return frozenset(live - self._shutting_down.keys()) or frozenset(live)

    def look_again(self) -> None:
        """Have `follow` compare the brokers, and the partitions without a leader, once more."""
        self._news.set()

    async def follow(self, turns: ChangeTurns) -> None:
        """Work off what happens to brokers, until this is not the controller any more."""
        while True:
            await self._news.wait()
            self._news.clear()
            try:
                await turns.run(self.work_off)
            except (KafkaError, CorruptNodeError) as error:
                if isinstance(error, KafkaError) and error.code == ErrorCode.NOT_CONTROLLER:
                    return
                _logger.error("A change of brokers could not be worked off: %s", error)
                await asyncio.sleep(RETRY_PAUSE_S)
                self._news.set()
            except Exception:
                _logger.exception("A change of brokers could not be worked off")
                # Nobody would look after brokers any more: another controller shall.
                self._writes.give_up("it met an error that it did not expect.")
                return

    async def work_off(self) -> None:
        """Find out what has changed and carry it out; KafkaError if some of it was not done."""
        with self._writes.kafka_errors():
            present, marks = await load_present_brokers(self._store, self._watch)
        marks = {broker_id: mark for broker_id, mark in marks.items() if broker_id in present}
        known = self._publisher.image.brokers
        news: dict[int, BrokerInfo | None] = {
            broker_id: broker
            for broker_id, broker in present.items()
            if known.get(broker_id) != broker
        }
        news |= {broker_id: None for broker_id in known if broker_id not in present}
        self._shutting_down = {
            broker_id: epoch
            for broker_id, epoch in self._shutting_down.items()
            if broker_id in present and present[broker_id].broker_epoch == epoch
        }
        turnover = BrokerTurnover(
            live=frozenset(present),
            restarted=frozenset(news.keys() & present.keys() & known.keys()) | marks.keys(),
            unclean=frozenset(each for each, mark in marks.items() if mark.is_unclean),
            shutting_down=self.shutting_down,
        )
        states = self._plan(turnover)
        event = _told(news, known.keys(), turnover.unclean if states else ())
        error = await self._partitions.carry_out(states, news, event)
        if error is not None:
            raise error
        await self._remove(marks)

    async def _remove(self, marks: Mapping[int, ReturnMark]) -> None:
        """Remove marks that are worked off, unless a new life has left them anew."""
        errors = await self._writes.multi_each(
            {
                broker_id: [Delete(unclean_broker_path(broker_id), mark.version)]
                for broker_id, mark in marks.items()
            }
        )
        for error in errors.values():
            if error.code != ErrorCode.UNKNOWN_SERVER_ERROR:
                raise error
            self.look_again()

    async def shut_down(self, broker_id: int, broker_epoch: int) -> int:
        """Hand over what a broker leads; from now on it gets no leadership and joins no ISR.

        Returns how many partitions it could not hand over.
        """
        broker = self._publisher.image.brokers.get(broker_id)
        if broker is None:
            raise KafkaError(ErrorCode.BROKER_ID_NOT_REGISTERED)
        if broker.broker_epoch != broker_epoch:
            raise KafkaError(ErrorCode.STALE_BROKER_EPOCH)
        # Whoever was replaced must not say that there is nothing left to do.
        await self._writes.multi([])
        self._shutting_down[broker_id] = broker_epoch
        plan = plan_shutdown(self._publisher.image, broker_id, self._shutting_down)
        event = f"Broker {broker_id} is about to stop."
        error = await self._partitions.carry_out(plan.states, event=event)
        if error is not None:
            raise error
        return plan.remaining_count

    async def unregister(self, broker_id: int) -> None:
        """Forget a broker that was stopped for good: its settings, and the mark of its return."""
        with self._writes.kafka_errors():
            present, marks = await load_present_brokers(self._store, self._watch)
        image = self._publisher.image
        operations = plan_unregistration(
            broker_id, image, marks.get(broker_id), is_alive=broker_id in present
        )
        # Whoever was replaced must not say that it is done, even if there is nothing to write.
        await self._writes.multi(operations)
        settings = config_resource(broker_id)
        if settings in image.configs:
            self._publisher.announce(ImageEdits(configs={settings: None}).apply(image))

    async def hold_elections(
        self, election_type: ElectionType, partitions: Iterable[TopicPartition] | None
    ) -> Outcome:
        """By partition, why nobody was elected, or None; see `leader_moves.plan_elections`."""
        image = self._publisher.image
        plan = plan_elections(image, election_type, partitions, self._shutting_down.keys())
        error = await self._partitions.carry_out(plan.states)
        if error is None:
            return plan.outcome
        return plan.outcome | dict.fromkeys(plan.states, error)

    def _plan(self, turnover: BrokerTurnover) -> dict[TopicPartition, PartitionImage]:
        states: dict[TopicPartition, PartitionImage] = {}
        # Most partitions are like others: each distinct one is planned once, and kept once.
        plans: dict[tuple[PartitionImage, bool], PartitionImage | None] = {}
        for topic in self._publisher.image.topics.values():
            unclean_allowed = self._is_unclean_allowed(topic.name)
            for number, partition in enumerate(topic.partitions):
                if not turnover.concerns(partition):
                    continue
                key = (partition, unclean_allowed)
                if key not in plans:
                    plans[key] = turnover.plan(partition, unclean_allowed=unclean_allowed)
                state = plans[key]
                if state is not None:
                    states[TopicPartition(topic.name, number)] = state
        return states

    def _is_unclean_allowed(self, topic: str) -> bool:
        image = self._publisher.image
        for configs in (image.topic_configs(topic), image.broker_configs(None)):
            # A text that is neither is ignored, as everywhere.
            text = configs.get(UNCLEAN_ELECTION_SETTING, "").strip().lower()
            if text in ("true", "false"):
                return text == "true"
        return self._options.unclean_leader_election_enabled

    def _watch(self, event: WatchEvent) -> None:
        self._news.set()


def _told(
    news: Mapping[int, BrokerInfo | None], known: Collection[int], unclean: Collection[int]
) -> str:
    """What happened to brokers, for the log."""
    gone = [broker_id for broker_id, broker in news.items() if broker is None]
    back = [broker_id for broker_id in news if broker_id in known and broker_id not in gone]
    come = [broker_id for broker_id in news if broker_id not in known]
    return " ".join(
        f"Brokers that {verdict}: {listed(sorted(brokers))}."
        for verdict, brokers in (
            ("are gone", gone),
            ("have come", come),
            ("were away, or have changed their addresses", back),
            ("may lack their last records", unclean),
        )
        if brokers
    )
