"""Topics go in two steps, and what was interrupted between them is finished."""

import asyncio
from pathlib import Path

from headwater.base.clocks import ManualClock
from headwater.base.errors import ErrorCode, KafkaError
from headwater.cluster.image.image import NO_CONFIGS, ConfigResource, ResourceKind
from headwater.cluster.store.embedded.journal import Changes
from headwater.cluster.store.embedded.store import EmbeddedStore
from headwater.cluster.store.errors import StoreWriteError
from headwater.cluster.topics.new_topic import ControllerOptions, CreatedTopic, NewTopic
from tests.support.async_tests import run_async
from tests.support.brokers.controllers import new_seat, take_seat, until
from tests.support.brokers.metadata_stores import DictJournal, open_in_memory, open_sqlite

TOPIC = ConfigResource(ResourceKind.TOPIC, "t")


@run_async
async def test_topics_are_deleted_by_name_or_id() -> None:
    store = (await open_in_memory()).connect()
    seat = await take_seat(store)
    controller = seat.controller
    nodes_before = await store.children("/brokers/topics")
    created = await controller.create_topics([NewTopic("t", 3), NewTopic("u"), NewTopic("stays")])
    seat.publisher.changes.clear()
    t, u = controller.image.topics["t"], created["u"]
    assert isinstance(u, CreatedTopic)
    answers = await controller.delete_topics(["t", u.topic_id, "missing"])
    assert answers["t"] is None and answers[u.topic_id] is None
    missing = answers["missing"]
    assert missing is not None and missing.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert set(controller.image.topics) == {"stays"}
    assert controller.image.topic_by_id(u.topic_id) is None
    assert controller.image.config(TOPIC).version == NO_CONFIGS
    (change,) = seat.publisher.changes
    assert t in change.deleted_topics and len(change.deleted_topics) == 2
    unknown = (await controller.delete_topics([u.topic_id]))[u.topic_id]
    assert unknown is not None and unknown.code == ErrorCode.UNKNOWN_TOPIC_ID
    await controller.delete_topics(["stays"])
    for parent in ("/brokers/topics", "/config/topics", "/admin/delete_topics"):
        assert await store.children(parent) == nodes_before == []
    again = (await controller.create_topics([NewTopic("t")]))["t"]
    assert isinstance(again, CreatedTopic) and again.topic_id != t.topic_id


@run_async
async def test_deletion_can_be_turned_off() -> None:
    options = ControllerOptions(topic_deletion_enabled=False)
    seat = await take_seat((await open_in_memory()).connect(), options)
    controller = seat.controller
    await controller.create_topics([NewTopic("t")])
    error = (await controller.delete_topics(["t"]))["t"]
    assert error is not None and error.code == ErrorCode.TOPIC_DELETION_DISABLED
    assert "t" in controller.image.topics


class _FailingJournal(DictJournal):
    """Refuses as many commits as a test wants refused."""

    refusals = 0

    async def commit(self, changes: Changes, transaction_id: int) -> None:
        if self.refusals > 0:
            self.refusals -= 1
            raise StoreWriteError("The disk is full.")
        await super().commit(changes, transaction_id)


@run_async
async def test_a_disk_that_was_full_does_not_leave_a_topic_half_deleted() -> None:
    journal = _FailingJournal()
    session = (await EmbeddedStore.open(journal, ManualClock())).connect()
    seat = await take_seat(session)
    controller = seat.controller
    journal.refusals = 1
    answer = (await controller.create_topics([NewTopic("t")]))["t"]
    assert isinstance(answer, KafkaError) and answer.code == ErrorCode.KAFKA_STORAGE_ERROR
    assert isinstance((await controller.create_topics([NewTopic("t")]))["t"], CreatedTopic)
    journal.refusals = 1
    error = (await controller.delete_topics(["t"]))["t"]
    assert error is not None and error.code == ErrorCode.KAFKA_STORAGE_ERROR
    assert "t" in controller.image.topics

    seat.publisher.brokers_follow.clear()
    deletion = asyncio.create_task(controller.delete_topics(["t"]))
    await until(lambda: "t" not in controller.image.topics)
    journal.refusals = 1
    seat.publisher.brokers_follow.set()
    error = (await deletion)["t"]
    assert error is not None and error.code == ErrorCode.KAFKA_STORAGE_ERROR
    # The mark is durable and the logs are gone, so the topic is too; the nodes follow.
    assert "t" not in controller.image.topics
    assert await session.children("/admin/delete_topics") == ["t"]
    # As long as they cannot, the name cannot be had again; others can.
    journal.refusals = 1
    answers = await controller.create_topics([NewTopic("t"), NewTopic("other")])
    refused = answers["t"]
    assert isinstance(refused, KafkaError) and refused.code == ErrorCode.KAFKA_STORAGE_ERROR
    assert isinstance(answers["other"], CreatedTopic)
    journal.refusals = 0
    assert isinstance((await controller.create_topics([NewTopic("t")]))["t"], CreatedTopic)
    assert await session.children("/admin/delete_topics") == []


@run_async
async def test_an_interrupted_deletion_is_finished_after_a_restart(tmp_path: Path) -> None:
    store = await open_sqlite(tmp_path)
    session = store.connect()
    seat = await take_seat(session)
    await seat.controller.create_topics([NewTopic("t", 2), NewTopic("stays")])
    topic = seat.controller.image.topics["t"]
    seat.publisher.brokers_follow.clear()
    deletion = asyncio.create_task(seat.controller.delete_topics(["t"]))
    await until(lambda: "t" not in seat.controller.image.topics)
    # A mark whose topic was never there, as well.
    await session.create("/admin/delete_topics/never", b"")
    deletion.cancel()
    await store.close()

    store = await open_sqlite(tmp_path)
    session = store.connect()
    seat = await new_seat(session)
    seat.publisher.brokers_follow.clear()
    await seat.controller.start()
    # The brokers first hear of the topic, so that they know its logs, and then of its end.
    assert seat.publisher.changes[0].image.topics["t"] == topic
    seat.publisher.brokers_follow.set()
    await until(lambda: "t" not in seat.controller.image.topics)
    assert [each.deleted_topics for each in seat.publisher.changes[1:]] == [(topic,)]
    while await session.children("/admin/delete_topics"):
        await asyncio.sleep(0)
    assert set(seat.controller.image.topics) == {"stays"}
    assert await session.children("/brokers/topics") == ["stays"]
    await store.close()


@run_async
async def test_a_large_topic_that_was_half_removed_is_removed_by_the_next_controller() -> None:
    store = await open_in_memory()
    first = store.connect()
    seat = await take_seat(first)
    await seat.controller.create_topics([NewTopic("large", 450), NewTopic("stays", 2)])
    await first.create("/admin/delete_topics/large", b"")
    for number in range(200):
        await first.delete(f"/brokers/topics/large/partitions/{number}/state")
        await first.delete(f"/brokers/topics/large/partitions/{number}")
    await first.close()
    session = store.connect()
    seat = await take_seat(session)
    # The brokers had heard of its end before the removal began.
    assert [set(change.image.topics) for change in seat.publisher.changes] == [{"stays"}]
    for parent in ("/brokers/topics", "/config/topics"):
        assert await session.children(parent) == ["stays"]
    again = (await seat.controller.create_topics([NewTopic("large", 450)]))["large"]
    assert isinstance(again, CreatedTopic)
    assert await seat.controller.delete_topics(["large"]) == {"large": None}
    assert await session.children("/brokers/topics") == ["stays"]


@run_async
async def test_a_topic_that_was_found_marked_can_be_deleted_and_made_again_meanwhile() -> None:
    store = await open_in_memory()
    first = store.connect()
    seat = await take_seat(first)
    await seat.controller.create_topics([NewTopic("t"), NewTopic("u")])
    for name in ("t", "u", "never"):
        await first.create(f"/admin/delete_topics/{name}", b"")
    await first.close()
    session = store.connect()
    seat = await new_seat(session)
    seat.publisher.brokers_follow.clear()
    await seat.controller.start()
    assert await session.children("/admin/delete_topics") == ["t", "u"]
    deletion = asyncio.create_task(seat.controller.delete_topics(["t"]))
    await until(lambda: "t" not in seat.controller.image.topics)
    creation = asyncio.create_task(
        seat.controller.create_topics([NewTopic("t"), NewTopic("never")])
    )
    await until(lambda: "t" in seat.controller.image.topics)
    seat.publisher.brokers_follow.set()
    assert await deletion == {"t": None}
    assert isinstance((await creation)["t"], CreatedTopic)
    await until(lambda: "u" not in seat.controller.image.topics)
    while await session.children("/admin/delete_topics"):
        await asyncio.sleep(0)
    assert set(seat.controller.image.topics) == {"t", "never"}
    assert await session.children("/brokers/topics") == ["never", "t"]
