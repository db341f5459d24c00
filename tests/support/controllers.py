"""Controllers for tests, started on a store of the test's choice."""

from __future__ import annotations

from headwater.base.clocks import ManualClock
from headwater.base.randomness import SeededRandom
from headwater.cluster.controller import Controller
from headwater.cluster.image import BrokerInfo, EndpointInfo
from headwater.cluster.image_change import ImageChange
from headwater.cluster.new_topic import ControllerOptions
from headwater.cluster.store.metadata_store import MetadataStore


def broker_info(broker_id: int = 0, rack: str | None = None) -> BrokerInfo:
    endpoint = EndpointInfo("PLAINTEXT", "localhost", 9092 + broker_id)
    return BrokerInfo(broker_id, (endpoint,), rack)


def new_controller(
    store: MetadataStore,
    options: ControllerOptions | None = None,
    *,
    broker: BrokerInfo | None = None,
    seed: int = 7,
) -> Controller:
    """One that is not started."""
    return Controller(
        store,
        broker or broker_info(),
        options or ControllerOptions(),
        ManualClock(),
        SeededRandom(seed),
    )


async def start_controller(
    store: MetadataStore,
    options: ControllerOptions | None = None,
    *,
    broker: BrokerInfo | None = None,
    seed: int = 7,
) -> Controller:
    """One that serves, with nothing left over from before."""
    controller = new_controller(store, options, broker=broker, seed=seed)
    await controller.start()
    await controller.finish_interrupted_deletions()
    return controller


class RecordingSubscriber:
    """Keeps the changes that it is told of."""

    def __init__(self) -> None:
        self.changes: list[ImageChange] = []

    async def __call__(self, change: ImageChange) -> None:
        self.changes.append(change)
