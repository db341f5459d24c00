"""Who follows a broker's image hears of a change before anybody sees a topic without its logs."""

import asyncio
import uuid

import pytest

from headwater.base.errors import ErrorCode, KafkaError
from headwater.cluster.image.change import ImageChange, ImageEdits
from headwater.cluster.image.image import PartitionImage, TopicImage
from headwater.cluster.image.publisher import ImagePublisher
from tests.support.async_tests import run_async


def _creation(publisher: ImagePublisher) -> ImageChange:
    edits = ImageEdits()
    edits.topics["t"] = TopicImage("t", uuid.UUID(int=9), (PartitionImage((0,), (0,), 0, 0, 0),))
    return edits.apply(publisher.image)


def _deletion(publisher: ImagePublisher) -> ImageChange:
    edits = ImageEdits()
    edits.topics["t"] = None
    return edits.apply(publisher.image)


@run_async
async def test_a_new_topic_is_seen_with_its_logs_and_a_deleted_one_not_while_they_go() -> None:
    publisher = ImagePublisher()
    seen: list[tuple[bool, bool]] = []
    release = asyncio.Event()

    async def witness(change: ImageChange) -> None:
        seen.append(("t" in publisher.image.topics, "t" in change.image.topics))
        await release.wait()

    publisher.subscribe(witness)
    creation = asyncio.create_task(publisher.publish(_creation(publisher)))
    for _ in range(10):
        await asyncio.sleep(0)
    assert not creation.done() and len(publisher.image.topics) == 0
    release.set()
    await creation
    assert "t" in publisher.image.topics
    await publisher.publish(_deletion(publisher))
    assert seen == [(False, True), (False, False)]


@pytest.mark.parametrize(
    "error", [OSError("The disk is gone."), KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "Gone.")]
)
@run_async
async def test_one_that_fails_does_not_stop_the_others(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    publisher = ImagePublisher()
    heard: list[ImageChange] = []

    async def fail(change: ImageChange) -> None:
        raise error

    async def hear(change: ImageChange) -> None:
        heard.append(change)

    publisher.subscribe(fail)
    publisher.subscribe(hear)
    await publisher.publish(_creation(publisher))
    assert len(heard) == 1 and "t" in publisher.image.topics
    assert [record.getMessage() for record in caplog.records] == [
        f"A change of the metadata could not be followed: {error}"
    ]


@run_async
async def test_a_bug_is_not_hidden_and_the_image_is_the_new_one_nevertheless() -> None:
    publisher = ImagePublisher()

    async def divide(change: ImageChange) -> None:
        raise ZeroDivisionError

    publisher.subscribe(divide)
    with pytest.raises(ZeroDivisionError):
        await publisher.publish(_creation(publisher))
    assert "t" in publisher.image.topics
