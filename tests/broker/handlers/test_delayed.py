"""DescribeDelayed and AlterDelayed: what waits in partitions is listed, cancelled, rescheduled."""

import asyncio
from pathlib import Path
from typing import cast

import pytest

from headwater.base.durations import LONG_MAX
from headwater.base.errors import ErrorCode, KafkaError
from headwater.broker.handlers import alter_delayed, describe_delayed
from headwater.broker.requests.api_handler import ApiHandler
from headwater.delay.delays import Delays
from headwater.delay.waiting import ChangeKind, DelayChange, MessageName
from headwater.wire.api_keys import ApiKey
from headwater.wire.cluster_messages.alter_delayed import (
    AlterDelayedChange,
    AlterDelayedPartition,
    AlterDelayedRequest,
    AlterDelayedResponse,
    AlterDelayedTopic,
    AlteredDelayedPartition,
)
from headwater.wire.cluster_messages.describe_delayed import (
    DescribedDelayedPartition,
    DescribeDelayedPartition,
    DescribeDelayedRequest,
    DescribeDelayedResponse,
    DescribeDelayedTopic,
)
from headwater.wire.delayed.delayed_batch import DUE_MS_MAX
from headwater.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from tests.support.brokers.handler_broker import HandlerBroker, run_with_broker
from tests.support.fakes.delays import FakeDelays

CANCEL, RESCHEDULE, NOW = ChangeKind


async def delaying(broker: HandlerBroker, configs: dict[str, str] | None = None) -> FakeDelays:
    """Messages 3, 4 and 5 of `orders-0`, of which two have an id."""
    await broker.create_topic("orders", partitions=2, configs=configs)
    delays = FakeDelays()
    broker.context.delays = cast(Delays, delays)
    delays.at("orders").add(3, due_ms=3000, sender_id=b"mine", key=b"k")
    delays.at("orders").add(4, due_ms=2000)
    delays.at("orders").add(5, due_ms=2000, sender_id=b"mine")
    return delays


async def describe(
    broker: HandlerBroker, *asked: DescribeDelayedPartition, topic: str = "orders"
) -> list[DescribedDelayedPartition]:
    request = DescribeDelayedRequest(
        topics=[DescribeDelayedTopic(name=topic, partitions=list(asked))]
    )
    [answer] = (await broker.ask(request, DescribeDelayedResponse)).topics
    assert answer.name == topic
    return answer.partitions


async def alter(
    broker: HandlerBroker,
    *changes: AlterDelayedChange,
    topic: str = "orders",
    timeout_ms: int = 10_000,
) -> AlteredDelayedPartition:
    partition = AlterDelayedPartition(changes=list(changes))
    request = AlterDelayedRequest(
        timeout_ms=timeout_ms, topics=[AlterDelayedTopic(name=topic, partitions=[partition])]
    )
    [answer] = (await broker.ask(request, AlterDelayedResponse)).topics[0].partitions
    return answer


def offsets(described: DescribedDelayedPartition) -> list[int]:
    return [message.offset for message in described.messages]


def test_messages_are_found_by_offset_by_sender_and_by_time(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await delaying(broker)
        ask = DescribeDelayedPartition
        found = await describe(
            broker,
            ask(offset=3),
            ask(sender_id=b"mine"),
            ask(limit=10),
            ask(limit=2),
            ask(from_ms=2001, limit=10),
            ask(to_ms=2000, limit=2),
            ask(),
            ask(partition_index=1, limit=10),
            ask(offset=9),
        )
        assert [offsets(each) for each in found] == [
            [3], [3, 5], [4, 5, 3], [4, 5], [3], [4, 5], [], [], []
        ]  # fmt: skip
        has_more = [each.has_more for each in found]
        assert has_more == [False, False, False, True, False, False, False, False, False]
        message = found[0].messages[0]
        assert (message.due_ms, message.sent_ms, message.expires_ms) == (3000, 500, -1)
        assert (message.sender_id, message.key, message.size_bytes) == (b"mine", b"k", 10)
        assert (found[6].counts.waiting, found[6].counts.next_due_ms) == (3, 2000)
        assert (found[7].counts.waiting, found[7].counts.next_due_ms) == (0, -1)

    run_with_broker(tmp_path, scenario)


def test_a_list_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(describe_delayed, "MESSAGES_MAX", 2)
    monkeypatch.setattr(describe_delayed, "LISTED_MAX", 3)

    async def scenario(broker: HandlerBroker) -> None:
        delays = await delaying(broker)
        ask = DescribeDelayedPartition
        first, second, third = await describe(
            broker, ask(limit=1_000_000), ask(limit=2), ask(limit=1)
        )
        assert (offsets(first), first.has_more) == ([4, 5], True)
        assert (offsets(second), second.has_more) == ([4], True)
        assert (offsets(third), third.has_more) == ([], True)
        monkeypatch.setattr(describe_delayed, "LISTED_BYTES_MAX", 10)
        for offset in range(2):
            delays.at("orders", 1).add(offset, due_ms=1, key=bytes(8))
        first, second = await describe(
            broker, ask(partition_index=1, limit=2), ask(partition_index=1, offset=0)
        )
        assert (offsets(first), first.has_more) == ([0], True)
        assert (offsets(second), second.has_more) == ([], True)

    run_with_broker(tmp_path, scenario)


def test_a_list_goes_on_where_another_ended(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await delaying(broker)
        ask = DescribeDelayedPartition
        first, second, last = await describe(
            broker, ask(limit=1), ask(limit=1, skip=1), ask(limit=5, skip=2)
        )
        assert (offsets(first), first.has_more) == ([4], True)
        assert (offsets(second), second.has_more) == ([5], True)
        assert (offsets(last), last.has_more) == ([3], False)

    run_with_broker(tmp_path, scenario)


def test_questions_that_make_no_sense(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        delays = await delaying(broker)
        delays.at("orders", 1).errors.append(KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS))
        ask = DescribeDelayedPartition
        answers = await describe(
            broker,
            ask(offset=3, sender_id=b"mine"),
            ask(limit=-1),
            ask(limit=1, skip=-1),
            ask(limit=1, skip=describe_delayed.SKIP_MAX + 1),
            ask(partition_index=1),
            ask(partition_index=2),
        )
        assert [each.error_code for each in answers] == [
            ErrorCode.INVALID_REQUEST,
            ErrorCode.INVALID_REQUEST,
            ErrorCode.INVALID_REQUEST,
            ErrorCode.INVALID_REQUEST,
            ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ]
        assert all(each.error_message for each in answers)
        answers = await describe(broker, *[ask(offset=3)] * (describe_delayed.QUESTIONS_MAX + 1))
        assert [each.error_code for each in answers[-2:]] == [0, ErrorCode.INVALID_REQUEST]
        [answer] = await describe(broker, ask(), topic="unknown")
        assert answer.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    run_with_broker(tmp_path, scenario)


def test_messages_are_cancelled_and_rescheduled(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        delays = await delaying(broker)
        answer = await alter(
            broker,
            AlterDelayedChange(kind=CANCEL, sender_id=b"mine"),
            AlterDelayedChange(kind=RESCHEDULE, offset=4, due_ms=9000),
            AlterDelayedChange(kind=CANCEL, offset=3),
        )
        assert answer.error_code == ErrorCode.NONE
        assert [each.offsets for each in answer.results] == [[3, 5], [4], []]
        codes = [each.error_code for each in answer.results]
        assert codes == [ErrorCode.NONE, ErrorCode.NONE, ErrorCode.RESOURCE_NOT_FOUND]
        assert answer.results[2].error_message == (
            "No message waits as orders-0@3: it was delivered, cancelled or never there."
        )
        waiting = delays.at("orders").messages
        assert {offset: each.due_ms for offset, each in waiting.items()} == {4: 9000}
        answer = await alter(broker, AlterDelayedChange(kind=NOW, offset=4))
        assert [each.offsets for each in answer.results] == [[4]]
        assert delays.at("orders").changes[-1] == DelayChange(NOW, MessageName(4))

    run_with_broker(tmp_path, scenario)


def test_changes_that_make_no_sense_leave_the_others(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        delays = await delaying(broker)
        answer = await alter(
            broker,
            AlterDelayedChange(kind=7, offset=3),
            AlterDelayedChange(kind=CANCEL),
            AlterDelayedChange(kind=CANCEL, offset=4),
            AlterDelayedChange(kind=CANCEL, offset=3, sender_id=b"mine"),
            AlterDelayedChange(kind=RESCHEDULE, offset=3),
            AlterDelayedChange(kind=CANCEL, sender_id=b"nobody's \xff"),
        )
        wrong = ErrorCode.INVALID_REQUEST
        assert [each.error_code for each in answer.results] == [
            wrong, wrong, ErrorCode.NONE, wrong, wrong, ErrorCode.RESOURCE_NOT_FOUND
        ]  # fmt: skip
        assert all(each.error_message for each in answer.results if each.error_code)
        assert sorted(delays.at("orders").messages) == [3, 5]

    run_with_broker(tmp_path, scenario)


def test_no_message_is_due_later_than_there_is_a_time(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        delays = await delaying(broker, {"delay.max.ms": str(LONG_MAX)})
        answer = await alter(
            broker,
            AlterDelayedChange(kind=RESCHEDULE, offset=3, due_ms=LONG_MAX),
            AlterDelayedChange(kind=RESCHEDULE, offset=4, due_ms=DUE_MS_MAX),
        )
        assert [each.error_code for each in answer.results] == [ErrorCode.INVALID_REQUEST, 0]
        assert delays.at("orders").messages[4].due_ms == DUE_MS_MAX

    run_with_broker(tmp_path, scenario)


def test_a_partition_that_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alter_delayed, "CHANGES_MAX", 2)

    async def scenario(broker: HandlerBroker) -> None:
        delays = await delaying(broker)
        cancel = AlterDelayedChange(kind=CANCEL, offset=3)
        answer = await alter(broker, cancel, cancel, cancel)
        assert (answer.error_code, answer.results) == (ErrorCode.INVALID_REQUEST, [])
        by_id = AlterDelayedChange(kind=NOW, sender_id=b"mine")
        monkeypatch.setattr(alter_delayed, "BY_SENDER_ID_MAX", 1)
        answer = await alter(broker, by_id, by_id)
        assert (answer.error_code, answer.results) == (ErrorCode.INVALID_REQUEST, [])
        refusal = KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "Not here.")
        delays.at("orders").errors.append(refusal)
        answer = await alter(broker, cancel)
        assert (answer.error_code, answer.results) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, [])
        assert answer.error_message == "Not here."
        answer = await alter(broker, cancel, topic="unknown")
        assert answer.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert sorted(delays.at("orders").messages) == [3, 4, 5]

    run_with_broker(tmp_path, scenario)


def test_a_partition_is_changed_once_in_a_request(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        delays = await delaying(broker)
        now = AlterDelayedPartition(changes=[AlterDelayedChange(kind=NOW, offset=4)])
        request = AlterDelayedRequest(
            timeout_ms=10_000, topics=[AlterDelayedTopic(name="orders", partitions=[now])] * 2
        )
        answers = (await broker.ask(request, AlterDelayedResponse)).topics
        codes = [topic.partitions[0].error_code for topic in answers]
        assert codes == [ErrorCode.NONE, ErrorCode.INVALID_REQUEST]
        assert len(delays.at("orders").changes) == 1

    run_with_broker(tmp_path, scenario)


@pytest.mark.parametrize("becomes_safe", [True, False])
def test_the_answer_waits_until_changes_are_safe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, becomes_safe: bool
) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await delaying(broker)
        partition = broker.context.partitions.get("orders", 0)
        is_safe = False
        monkeypatch.setattr(
            type(partition), "is_acknowledged", lambda *_, **__: is_safe, raising=True
        )
        timeout_ms = 10_000 if becomes_safe else 1
        asked = asyncio.create_task(
            alter(broker, AlterDelayedChange(offset=3), timeout_ms=timeout_ms)
        )
        for _ in range(20):
            await asyncio.sleep(0)
        assert not asked.done()
        if becomes_safe:
            is_safe = True
            broker.context.parked.produce.check(partition.topic_partition)
        answer = await asked
        if becomes_safe:
            assert [each.offsets for each in answer.results] == [[3]]
        else:
            assert (answer.error_code, answer.results) == (ErrorCode.REQUEST_TIMED_OUT, [])

    run_with_broker(tmp_path, scenario)


def test_the_log_tells_who_changed_what(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await delaying(broker)
        handler = broker.context.api_table.get(ApiKey.ALTER_DELAYED)
        assert isinstance(handler, ApiHandler)
        assert handler.deeds is not None
        partition = AlterDelayedPartition(
            changes=[
                AlterDelayedChange(kind=CANCEL, sender_id=b"mine"),
                AlterDelayedChange(kind=9),
                AlterDelayedChange(kind=NOW, offset=4),
                AlterDelayedChange(kind=NOW, offset=99),
            ]
        )
        topic = AlterDelayedTopic(name="orders", partitions=[partition])
        unknown = AlterDelayedTopic(name="unknown", partitions=[partition])
        request = AlterDelayedRequest(timeout_ms=9, topics=[topic, unknown])
        response = await broker.ask(request, AlterDelayedResponse)
        assert [each for each in handler.deeds(request, response) if each] == [
            "cancelled the messages orders-0@3, orders-0@5",
            "delivered early the message orders-0@4",
        ]

    run_with_broker(tmp_path, scenario)


def test_clients_are_told_of_both(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        response = await broker.ask(ApiVersionsRequest(), ApiVersionsResponse, version=0)
        versions = {
            each.api_key: (each.min_version, each.max_version) for each in response.api_keys
        }
        assert versions[ApiKey.DESCRIBE_DELAYED] == (0, 1)
        assert versions[ApiKey.ALTER_DELAYED] == (0, 0)

    run_with_broker(tmp_path, scenario)
