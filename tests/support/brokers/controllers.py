"""Controllers for tests, elected and started on a store of the test's choice."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from headwater.base.background_tasks import BackgroundTasks
from headwater.base.clocks import ManualClock
from headwater.base.randomness import SeededRandom
from headwater.cluster.brokers.registration import register_broker
from headwater.cluster.controller.controller import Controller
from headwater.cluster.controller.election import elect_controller
from headwater.cluster.identity import establish_cluster_id
from headwater.cluster.image.change import ImageChange
from headwater.cluster.image.image import BrokerInfo, ClusterImage, EndpointInfo
from headwater.cluster.store.metadata_store import MetadataStore
from headwater.cluster.topics.new_topic import ControllerOptions


def broker_info(broker_id: int = 0, rack: str | None = None) -> BrokerInfo:
    endpoint = EndpointInfo("PLAINTEXT", "localhost", 9092 + broker_id)
    return BrokerInfo(broker_id, (endpoint,), rack)


class RecordingPublisher:
    """Keeps the changes that it is told of; brokers follow at once, or when a test lets them."""

    def __init__(self) -> None:
        self.image = ClusterImage()
        self.changes: list[ImageChange] = []
        #: Cleared by a test that wants brokers to be slow.
        self.brokers_follow = asyncio.Event()
        self.brokers_follow.set()

    def announce(self, change: ImageChange) -> None:
        self.image = change.image
        self.changes.append(change)

    async def followed(self, version: int) -> None:
        await self.brokers_follow.wait()


@dataclass
class Seat:
    """An elected controller with what is around it."""

    controller: Controller
    publisher: RecordingPublisher
    broker: BrokerInfo
    epoch: int
    #: One entry for each time that the controller said that it was over.
    depositions: list[int] = field(default_factory=list)


async def new_seat(
    store: MetadataStore,
    options: ControllerOptions | None = None,
    *,
    broker: BrokerInfo | None = None,
    seed: int = 7,
    cluster_id: str | None = None,
    is_registered: bool = False,
) -> Seat:
    """Register a broker, unless it is, and have it elected; the controller is not started."""
    random = SeededRandom(seed)
    await establish_cluster_id(store, cluster_id, random.uuid)
    broker = broker or broker_info()
    clock = ManualClock()
    if not is_registered:
        broker = await register_broker(store, broker, clock.wall_ms())
    election = await elect_controller(store, broker.broker_id, clock.wall_ms())
    assert election.won
    publisher = RecordingPublisher()
    depositions: list[int] = []
    controller = Controller(
        store,
        election,
        publisher,
        options or ControllerOptions(),
        clock,
        random,
        lambda: depositions.append(election.epoch),
        BackgroundTasks(),
    )
    return Seat(controller, publisher, broker, election.epoch, depositions)


async def take_seat(
    store: MetadataStore,
    options: ControllerOptions | None = None,
    *,
    broker: BrokerInfo | None = None,
    seed: int = 7,
    cluster_id: str | None = None,
    is_registered: bool = False,
) -> Seat:
    """The same, started and with nothing left over from before."""
    seat = await new_seat(
        store,
        options,
        broker=broker,
        seed=seed,
        cluster_id=cluster_id,
        is_registered=is_registered,
    )
    await seat.controller.start()
    async with asyncio.timeout(20):
        while await store.children("/admin/delete_topics"):
            await asyncio.sleep(0)
    return seat


async def until(condition: Callable[[], object]) -> None:
    """Let the others run until the condition holds."""
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0)


async def start_controller(
    store: MetadataStore,
    options: ControllerOptions | None = None,
    *,
    broker: BrokerInfo | None = None,
    seed: int = 7,
) -> Controller:
    """A controller that serves."""
    return (await take_seat(store, options, broker=broker, seed=seed)).controller
