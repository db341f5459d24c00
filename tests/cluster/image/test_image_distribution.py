"""The controller's image reaches every broker, whatever is lost on the way."""

import asyncio
import uuid
from collections.abc import Callable

import pytest

from headwater.base.background_tasks import BackgroundTasks
from headwater.base.errors import ErrorCode, KafkaError
from headwater.cluster.image import distribution as image_distribution
from headwater.cluster.image.change import ImageChange, ImageEdits
from headwater.cluster.image.distribution import ImageDistribution
from headwater.cluster.image.image import BrokerInfo, ClusterImage, PartitionImage, TopicImage
from headwater.cluster.image.reception import fits, updated
from headwater.wire.cluster_messages.update_image import UpdateImageRequest, UpdateImageResponse
from tests.support.async_tests import run_async
from tests.support.waiting import TIMEOUT_S

OWN_ID = 0


class FakeBrokers:
    """Brokers that follow messages as real ones do, unless a test has something else in mind."""

    def __init__(self) -> None:
        self.images: dict[int, ClusterImage] = {}
        self.requests: list[tuple[int, UpdateImageRequest]] = []
        self.unreachable: set[int] = set()
        self.hanging: set[int] = set()
        self.answers_lost: dict[int, int] = {}
        self.later_controllers: set[int] = set()

    async def send(self, broker: BrokerInfo, request: UpdateImageRequest) -> UpdateImageResponse:
        broker_id = broker.broker_id
        self.requests.append((broker_id, request))
        if broker_id in self.unreachable:
            raise KafkaError(ErrorCode.NETWORK_EXCEPTION, "unreachable")
        while broker_id in self.hanging:
            await asyncio.sleep(0.001)
        if broker_id in self.later_controllers:
            return UpdateImageResponse(error_code=ErrorCode.STALE_CONTROLLER_EPOCH)
        image = self.images.get(broker_id, ClusterImage())
        if not fits(image, request):
            return UpdateImageResponse(error_code=ErrorCode.INVALID_UPDATE_VERSION)
        self.images[broker_id] = updated(image, request).image
        if self.answers_lost.get(broker_id, 0) > 0:
            self.answers_lost[broker_id] -= 1
            raise KafkaError(ErrorCode.NETWORK_EXCEPTION, "the answer is lost")
        return UpdateImageResponse(version=request.to_version)

    def kinds(self, broker_id: int) -> list[str]:
        return [
            "snapshot" if request.is_snapshot else "delta"
            for told, request in self.requests
            if told == broker_id
        ]


def first_change(*broker_ids: int) -> ImageChange:
    image = ClusterImage("cluster", controller_id=OWN_ID, controller_epoch=1)
    return ImageEdits(brokers={each: BrokerInfo(each, ()) for each in broker_ids}).apply(image)


def new_topic(image: ClusterImage, name: str) -> ImageChange:
    partition = PartitionImage((0,), (0,), 0, 0, 0)
    topic_id = uuid.uuid5(uuid.NAMESPACE_DNS, name)
    return ImageEdits({name: TopicImage(name, topic_id, (partition,))}).apply(image)


class Deposed:
    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> None:
        self.count += 1


async def publish(distribution: ImageDistribution, change: ImageChange) -> None:
    """Announce a change, and wait until it was followed."""
    distribution.announce(change)
    await distribution.followed(change.image.version)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(TIMEOUT_S):
        while not condition():
            await asyncio.sleep(0.001)


@run_async
async def test_a_published_change_is_everywhere() -> None:
    brokers = FakeBrokers()
    distribution = ImageDistribution(OWN_ID, brokers.send, Deposed(), BackgroundTasks())
    await publish(distribution, first_change(0, 1, 2))
    await publish(distribution, new_topic(distribution.image, "orders"))
    for broker_id in (0, 1, 2):
        assert "orders" in brokers.images[broker_id].topics
        assert brokers.kinds(broker_id) == ["snapshot", "delta"]
    await distribution.close()


@run_async
async def test_changes_that_come_meanwhile_are_one_message() -> None:
    brokers = FakeBrokers()
    distribution = ImageDistribution(OWN_ID, brokers.send, Deposed(), BackgroundTasks())
    await publish(distribution, first_change(0, 1))
    brokers.hanging = {1}
    for name in ("a", "b", "c", "d"):
        distribution.announce(new_topic(distribution.image, name))
        await asyncio.sleep(0)
    brokers.hanging = set()
    await distribution.followed(distribution.image.version)
    assert set(brokers.images[1].topics) == {"a", "b", "c", "d"}
    assert len(brokers.kinds(1)) < 5
    await distribution.close()


@run_async
async def test_a_lost_answer_is_made_good_by_a_snapshot() -> None:
    brokers = FakeBrokers()
    distribution = ImageDistribution(OWN_ID, brokers.send, Deposed(), BackgroundTasks())
    await publish(distribution, first_change(0, 1))
    brokers.answers_lost = {1: 1}
    await publish(distribution, new_topic(distribution.image, "orders"))
    await until(lambda: brokers.kinds(1) == ["snapshot", "delta", "snapshot"])
    await publish(distribution, new_topic(distribution.image, "payments"))
    assert set(brokers.images[1].topics) == {"orders", "payments"}
    assert brokers.kinds(1)[-1] == "delta"
    await distribution.close()


@run_async
async def test_nobody_waits_for_a_broker_that_cannot_be_reached(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(image_distribution, "WARN_AFTER_S", 0.05)
    monkeypatch.setattr(image_distribution, "RETRY_PAUSE_S", 0.01)
    brokers = FakeBrokers()
    brokers.unreachable = {2}
    distribution = ImageDistribution(OWN_ID, brokers.send, Deposed(), BackgroundTasks())
    await publish(distribution, first_change(0, 1, 2))
    await publish(distribution, new_topic(distribution.image, "orders"))
    assert "orders" in brokers.images[1].topics and 2 not in brokers.images
    assert caplog.records == []
    await until(lambda: len(brokers.kinds(2)) > 10)
    assert [record.getMessage() for record in caplog.records] == [
        "Broker 2 does not follow: unreachable"
    ]
    brokers.unreachable = set()
    await until(lambda: "orders" in brokers.images.get(2, ClusterImage()).topics)
    await distribution.close()


@run_async
async def test_a_broker_that_hangs_is_waited_for_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(image_distribution, "FOLLOW_LIMIT_S", 0.05)
    brokers = FakeBrokers()
    brokers.hanging = {2}
    distribution = ImageDistribution(OWN_ID, brokers.send, Deposed(), BackgroundTasks())
    await publish(distribution, first_change(0, 1, 2))
    monkeypatch.setattr(image_distribution, "FOLLOW_LIMIT_S", 1_000.0)
    await publish(distribution, new_topic(distribution.image, "orders"))
    assert "orders" in brokers.images[1].topics
    brokers.hanging = set()
    await until(lambda: "orders" in brokers.images.get(2, ClusterImage()).topics)
    await distribution.close()


@run_async
async def test_another_life_of_a_broker_begins_with_a_snapshot() -> None:
    brokers = FakeBrokers()
    distribution = ImageDistribution(OWN_ID, brokers.send, Deposed(), BackgroundTasks())
    await publish(distribution, first_change(0, 1))
    del brokers.images[1]
    back = BrokerInfo(1, (), broker_epoch=9)
    await publish(distribution, ImageEdits(brokers={1: back}).apply(distribution.image))
    assert brokers.kinds(1) == ["snapshot", "snapshot"]
    assert brokers.images[1].brokers[1] == back
    gone = ImageEdits(brokers={1: None}).apply(distribution.image)
    await publish(distribution, gone)
    assert 1 not in brokers.images[0].brokers
    await distribution.close()


@run_async
async def test_a_broker_that_knows_a_later_controller_ends_this_one(
    caplog: pytest.LogCaptureFixture,
) -> None:
    brokers = FakeBrokers()
    deposed = Deposed()
    distribution = ImageDistribution(OWN_ID, brokers.send, deposed, BackgroundTasks())
    await publish(distribution, first_change(0, 1))
    brokers.later_controllers = {1}
    distribution.announce(new_topic(distribution.image, "orders"))
    await until(lambda: deposed.count > 0)
    await distribution.close()
    assert dict(brokers.images[1].topics) == {}
