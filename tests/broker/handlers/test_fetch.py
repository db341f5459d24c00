"""What becomes of a fetch request."""

import asyncio
from pathlib import Path

import pytest

from headwater.base.errors import ErrorCode
from headwater.storage.compaction.record_slices import batch_without_records
from headwater.storage.producers.entry import AppendOrigin
from headwater.wire.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
)
from headwater.wire.records import (
    ControlType,
    Record,
    encode_batch,
    encode_end_transaction_marker,
    read_batch_header,
)
from tests.support.brokers.running_broker import (
    FETCH_VERSION,
    RunningBroker,
    batch_of,
    fetch_request,
    produce_request,
    records_of,
    run_broker_scenario,
)


def _partitions(response: FetchResponse) -> dict[tuple[str, int], PartitionData]:
    return {
        (topic.topic, data.partition_index): data
        for topic in response.responses
        for data in topic.partitions
    }


def _values(data: PartitionData) -> list[bytes | None]:
    return [record.value for record in records_of(data)]


def _size(data: PartitionData) -> int:
    assert isinstance(data.records, memoryview | bytes)
    return len(data.records)


def test_offsets_of_the_partition_come_with_the_records(tmp_path: Path) -> None:
    async def scenario(broker: RunningBroker) -> None:
        await broker.create_topic("orders")
        await broker.produce("orders", [b"a", b"b"])
        await broker.produce("orders", [b"c"])
        response = await broker.fetch(fetch_request({("orders", 0): 1}))
        data = response.responses[0].partitions[0]
        # The batch that holds the offset comes whole.
        assert _values(data) == [b"a", b"b", b"c"]
        assert (data.high_watermark, data.last_stable_offset, data.log_start_offset) == (3, 3, 0)
        assert data.aborted_transactions is None

    run_broker_scenario(tmp_path, scenario)


def test_what_cannot_be_read_says_why(tmp_path: Path) -> None:
    async def scenario(broker: RunningBroker) -> None:
        await broker.create_topic("orders")
        await broker.produce("orders", [b"a"])
        epoch = broker.server.context.partitions.get("orders", 0).leader_epoch
        cases = [
            ("orders", 0, 2, -1, ErrorCode.OFFSET_OUT_OF_RANGE),
            ("orders", 0, -5, -1, ErrorCode.OFFSET_OUT_OF_RANGE),
            ("orders", 9, 0, -1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            ("unknown", 0, 0, -1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            ("orders", 0, 0, epoch + 1, ErrorCode.UNKNOWN_LEADER_EPOCH),
            ("orders", 0, 0, -2, ErrorCode.FENCED_LEADER_EPOCH),
            ("orders", 0, 0, epoch, ErrorCode.NONE),
        ]
        for topic, partition, offset, leader_epoch, code in cases:
            request = fetch_request({(topic, partition): offset}, min_bytes=1, max_wait_ms=60_000)
            request.topics[0].partitions[0].current_leader_epoch = leader_epoch
            data = (await broker.fetch(request)).responses[0].partitions[0]
            assert data.error_code == code
            if code:
                assert data.high_watermark == -1

    run_broker_scenario(tmp_path, scenario)


def test_an_epoch_that_was_never_heard_of_cannot_be_placed(tmp_path: Path) -> None:
    async def scenario(broker: RunningBroker) -> None:
        await broker.create_topic("orders")
        await broker.produce("orders", [b"a", b"b"])
        request = fetch_request({("orders", 0): 1})
        request.topics[0].partitions[0].last_fetched_epoch = 5
        data = (await broker.fetch(request)).responses[0].partitions[0]
        assert data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE

    run_broker_scenario(tmp_path, scenario)


def test_an_older_leader_epoch_is_fenced(tmp_path: Path) -> None:
    async def scenario(broker: RunningBroker) -> None:
        await broker.create_topic("orders")
        partition = broker.server.context.partitions.get("orders", 0)
        image = broker.server.context.image.topics["orders"].partitions[0]
        partition.apply(image._replace(leader_epoch=image.leader_epoch + 3))
        request = fetch_request({("orders", 0): 0})
        request.topics[0].partitions[0].current_leader_epoch = image.leader_epoch
        data = (await broker.fetch(request)).responses[0].partitions[0]
        assert data.error_code == ErrorCode.FENCED_LEADER_EPOCH
        assert data.current_leader.leader_epoch == image.leader_epoch + 3

    run_broker_scenario(tmp_path, scenario)


def test_budgets_bound_the_answer_and_always_let_a_reader_go_on(tmp_path: Path) -> None:
    async def scenario(broker: RunningBroker) -> None:
        await broker.create_topic("orders", partitions=3)
        for partition in range(3):
            for _ in range(4):
                await broker.produce("orders", [b"x" * 1000], partition=partition)
        offsets = {("orders", partition): 0 for partition in range(3)}
        tiny = await broker.fetch(fetch_request(offsets, partition_max_bytes=1, max_bytes=1))
        sizes = [len(_values(each)) for each in _partitions(tiny).values()]
        assert sizes == [1, 0, 0]  # The first batch comes whole, and only that one.
        some = await broker.fetch(fetch_request(offsets, max_bytes=6000))
        total = sum(map(_size, _partitions(some).values()))
        assert 4000 < total <= 6000
        small = await broker.fetch(fetch_request(offsets, partition_max_bytes=2500))
        assert all(_size(each) <= 2500 for each in _partitions(small).values())

    run_broker_scenario(tmp_path, scenario)


def test_a_broker_wide_limit_holds_too(tmp_path: Path) -> None:
    async def scenario(broker: RunningBroker) -> None:
        await broker.create_topic("orders")
        for _ in range(8):
            await broker.produce("orders", [b"x" * 1000])
        data = (await broker.fetch(fetch_request({("orders", 0): 0}))).responses[0].partitions[0]
        assert 0 < _size(data) <= 3000

    run_broker_scenario(tmp_path, scenario, {"fetch.max.bytes": "3000"})


def test_a_fetch_waits_for_bytes_and_is_woken_by_an_append(tmp_path: Path) -> None:
    async def scenario(broker: RunningBroker) -> None:
        await broker.create_topic("orders", partitions=2)
        waiting = await broker.connect()
        request = fetch_request(
            {("orders", 0): 0, ("orders", 1): 0}, min_bytes=1, max_wait_ms=60_000
        )
        pending = waiting.send_nowait(request, version=FETCH_VERSION)
        fetches = broker.server.context.parked.fetch
        while len(fetches) == 0:
            await asyncio.sleep(0)
        await broker.produce("orders", [b"x"], partition=1)
        response = await pending
        assert _values(_partitions(response)["orders", 1]) == [b"x"]
        assert len(fetches) == 0
        await waiting.close()

    run_broker_scenario(tmp_path, scenario)


def test_a_fetch_waits_until_min_bytes_have_gathered_in_all_its_partitions(tmp_path: Path) -> None:
    async def scenario(broker: RunningBroker) -> None:
        await broker.create_topic("orders", partitions=2)
        waiting = await broker.connect()
        request = fetch_request(
            {("orders", 0): 0, ("orders", 1): 0}, min_bytes=1500, max_wait_ms=60_000
        )
        pending = waiting.send_nowait(request, version=FETCH_VERSION)
        await broker.produce("orders", [b"x" * 1000])
        assert not pending.done()
        await broker.produce("orders", [b"y" * 1000], partition=1)
        assert [len(_values(each)) for each in _partitions(await pending).values()] == [1, 1]
        await waiting.close()

    run_broker_scenario(tmp_path, scenario)


def test_time_ends_the_wait(tmp_path: Path) -> None:
    async def scenario(broker: RunningBroker) -> None:
        await broker.create_topic("orders")
        request = fetch_request({("orders", 0): 0}, min_bytes=1, max_wait_ms=20)
        loop = asyncio.get_running_loop()
        started_s = loop.time()
        response = await broker.fetch(request)
        assert loop.time() - started_s >= 0.02
        assert _values(response.responses[0].partitions[0]) == []

    run_broker_scenario(tmp_path, scenario)


def _end_with_an_emptied_batch(broker: RunningBroker) -> None:
    """As a log ends whose last records were compacted away, in front of a segment without any."""
    partition = broker.server.context.partitions.get("orders", 0)
    emptied = batch_without_records(
        read_batch_header(
            encode_batch([Record(partition.log.log_end_offset, broker.now_ms, b"key", b"gone")])
        )
    )
    partition.log.append_as_follower(emptied, now_ms=broker.now_ms)
    partition.log.raise_high_watermark(partition.log.log_end_offset)


def test_nobody_is_woken_by_an_emptied_batch(tmp_path: Path) -> None:
    async def scenario(broker: RunningBroker) -> None:
        await broker.create_topic("orders", configs={"cleanup.policy": "compact"})
        await _produce_with_key(broker, b"a")
        _end_with_an_emptied_batch(broker)
        first = (await broker.fetch(fetch_request({("orders", 0): 0}))).responses[0].partitions[0]
        assert _values(first) == [b"a"]
        fetches = broker.server.context.parked.fetch
        request = fetch_request({("orders", 0): 1}, min_bytes=1, max_wait_ms=60_000)
        waiting = await broker.connect()
        pending = waiting.send_nowait(request, version=FETCH_VERSION)
        while len(fetches) == 0:
            await asyncio.sleep(0)
        await _produce_with_key(broker, b"b")
        response: FetchResponse = await pending
        data = response.responses[0].partitions[0]
        assert [(record.offset, record.value) for record in records_of(data)] == [(2, b"b")]
        assert isinstance(data.records, memoryview | bytes)
        assert read_batch_header(data.records).base_offset == 2
        await waiting.close()

    run_broker_scenario(tmp_path, scenario)


def test_who_waited_in_vain_hears_where_the_end_is(tmp_path: Path) -> None:
    async def scenario(broker: RunningBroker) -> None:
        await broker.create_topic("orders", configs={"cleanup.policy": "compact"})
        await _produce_with_key(broker, b"a")
        _end_with_an_emptied_batch(broker)
        _end_with_an_emptied_batch(broker)
        request = fetch_request({("orders", 0): 1}, min_bytes=1, max_wait_ms=20)
        loop = asyncio.get_running_loop()
        started_s = loop.time()
        data = (await broker.fetch(request)).responses[0].partitions[0]
        # kafka-go has rounded its wait down to whole milliseconds, and must have given up by now.
        assert loop.time() - started_s >= 0.021
        assert isinstance(data.records, memoryview | bytes)
        header = read_batch_header(data.records)
        assert (header.record_count, header.next_offset) == (0, data.high_watermark)

    run_broker_scenario(tmp_path, scenario)


async def _produce_with_key(broker: RunningBroker, value: bytes) -> None:
    batch = encode_batch([Record(0, broker.now_ms, b"key", value)])
    answer = await broker.produce_batch("orders", batch)
    assert answer.error_code == 0


def test_a_client_that_hangs_up_leaves_nothing_behind(tmp_path: Path) -> None:
    async def scenario(broker: RunningBroker) -> None:
        await broker.create_topic("orders")
        fetches = broker.server.context.parked.fetch
        held_before = broker.server.listeners.limits.budget.held_bytes
        waiting = await broker.connect()
        request = fetch_request({("orders", 0): 0}, min_bytes=1, max_wait_ms=2**31 - 1)
        pending = waiting.send_nowait(request, version=FETCH_VERSION)
        while len(fetches) == 0:
            await asyncio.sleep(0)
        await waiting.close()
        assert await asyncio.gather(pending, return_exceptions=True)
        while len(fetches):
            await asyncio.sleep(0)
        assert broker.server.listeners.limits.budget.held_bytes == held_before

    run_broker_scenario(tmp_path, scenario)


def test_deleting_a_topic_wakes_whoever_waits_for_it(tmp_path: Path) -> None:
    async def scenario(broker: RunningBroker) -> None:
        await broker.create_topic("orders")
        request = fetch_request({("orders", 0): 0}, min_bytes=1, max_wait_ms=60_000)
        waiting = await broker.connect()
        pending = waiting.send_nowait(request, version=FETCH_VERSION)
        while len(broker.server.context.parked.fetch) == 0:
            await asyncio.sleep(0)
        await broker.server.context.controller.delete_topics(["orders"])
        data = (await pending).responses[0].partitions[0]
        assert data.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        await waiting.close()

    run_broker_scenario(tmp_path, scenario)


def test_readers_of_committed_records_stop_at_the_open_transaction(tmp_path: Path) -> None:
    async def scenario(broker: RunningBroker) -> None:
        await broker.create_topic("orders")
        partition = broker.server.context.partitions.get("orders", 0)
        await broker.produce("orders", [b"plain"])
        open_batch = batch_of(
            [b"aborted"],
            broker.now_ms,
            producer_id=5,
            producer_epoch=0,
            base_sequence=0,
            transactional=True,
        )
        partition.append(bytearray(open_batch), acks=1, now_ms=broker.now_ms)
        await broker.produce("orders", [b"later"])

        def read(**fields: int) -> FetchRequest:
            return fetch_request({("orders", 0): 0}, **fields)

        everything = (await broker.fetch(read())).responses[0].partitions[0]
        assert _values(everything) == [b"plain", b"aborted", b"later"]
        stable = (await broker.fetch(read(isolation_level=1))).responses[0].partitions[0]
        assert _values(stable) == [b"plain"]
        assert (stable.last_stable_offset, stable.high_watermark) == (1, 3)
        marker = encode_end_transaction_marker(
            ControlType.ABORT,
            producer_id=5,
            producer_epoch=0,
            coordinator_epoch=0,
            timestamp_ms=broker.now_ms,
        )
        partition.append(
            bytearray(marker), acks=1, now_ms=broker.now_ms, origin=AppendOrigin.COORDINATOR
        )
        after = (await broker.fetch(read(isolation_level=1))).responses[0].partitions[0]
        assert (after.last_stable_offset, after.high_watermark) == (4, 4)
        assert [
            (each.producer_id, each.first_offset) for each in after.aborted_transactions or ()
        ] == [(5, 1)]

    run_broker_scenario(tmp_path, scenario)


def test_topics_are_found_by_id(tmp_path: Path) -> None:
    async def scenario(broker: RunningBroker) -> None:
        await broker.create_topic("orders")
        await broker.produce("orders", [b"x"])
        topic_id = broker.server.context.image.topics["orders"].topic_id
        partition = FetchPartition(partition=0, partition_max_bytes=1000)
        request = FetchRequest(
            topics=[
                FetchTopic(topic_id=topic_id, partitions=[partition]),
                FetchTopic(topic_id=type(topic_id)(int=99), partitions=[partition]),
            ]
        )
        response: FetchResponse = await broker.send(request, 17)
        assert [(each.topic_id, each.partitions[0].error_code) for each in response.responses] == [
            (topic_id, 0),
            (type(topic_id)(int=99), ErrorCode.UNKNOWN_TOPIC_ID),
        ]
        assert _values(response.responses[0].partitions[0]) == [b"x"]

    run_broker_scenario(tmp_path, scenario)


def test_a_session_remembers_the_partitions_and_answers_with_news_only(tmp_path: Path) -> None:
    async def scenario(broker: RunningBroker) -> None:
        await broker.create_topic("orders", partitions=3)
        offsets = {("orders", partition): 0 for partition in range(3)}
        first = await broker.fetch(fetch_request(offsets, session_epoch=0))
        session_id = first.session_id
        assert session_id > 0
        assert len(_partitions(first)) == 3

        def incremental(epoch: int, **fields: object) -> FetchRequest:
            return FetchRequest(session_id=session_id, session_epoch=epoch, **fields)  # type: ignore[arg-type]

        nothing = await broker.fetch(incremental(1))
        assert _partitions(nothing) == {}
        await broker.produce("orders", [b"x"], partition=2)
        # A request that names no partition brings what is new.
        news = await broker.fetch(incremental(2))
        assert list(_partitions(news)) == [("orders", 2)]
        assert _values(_partitions(news)["orders", 2]) == [b"x"]
        # The reader moves on, and forgets another partition.
        moved = FetchTopic(
            topic="orders",
            partitions=[FetchPartition(partition=2, fetch_offset=1, partition_max_bytes=1000)],
        )
        forgotten = ForgottenTopic(topic="orders", partitions=[0])
        assert (
            _partitions(
                await broker.fetch(
                    incremental(3, topics=[moved], forgotten_topics_data=[forgotten])
                )
            )
            == {}
        )
        await broker.produce("orders", [b"y"], partition=0)
        await broker.produce("orders", [b"z"], partition=1)
        assert list(_partitions(await broker.fetch(incremental(4)))) == [("orders", 1)]
        # Requests are numbered; one out of line is refused, and so is a session that is closed.
        wrong = await broker.fetch(incremental(9))
        assert wrong.error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH
        await broker.fetch(incremental(-1))
        closed = await broker.fetch(incremental(5))
        assert closed.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        assert len(broker.server.context.fetch_sessions) == 0

    run_broker_scenario(tmp_path, scenario)


def test_an_incremental_fetch_waits_for_news(tmp_path: Path) -> None:
    async def scenario(broker: RunningBroker) -> None:
        await broker.create_topic("orders", partitions=2)
        offsets = {("orders", partition): 0 for partition in range(2)}
        first = await broker.fetch(fetch_request(offsets, session_epoch=0))
        waiting = await broker.connect()
        pending = waiting.send_nowait(
            FetchRequest(
                session_id=first.session_id, session_epoch=1, min_bytes=1, max_wait_ms=60_000
            ),
            version=FETCH_VERSION,
        )
        while len(broker.server.context.parked.fetch) == 0:
            await asyncio.sleep(0)
        await broker.produce("orders", [b"x"], partition=1)
        assert list(_partitions(await pending)) == [("orders", 1)]
        await waiting.close()

    run_broker_scenario(tmp_path, scenario)


def test_a_session_of_names_is_not_continued_by_ids(tmp_path: Path) -> None:
    async def scenario(broker: RunningBroker) -> None:
        await broker.create_topic("orders")
        first = await broker.fetch(fetch_request({("orders", 0): 0}, session_epoch=0))
        response = await broker.send(FetchRequest(session_id=first.session_id, session_epoch=1), 17)
        assert response.error_code == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR

    run_broker_scenario(tmp_path, scenario)


@pytest.mark.parametrize("slots", [0, 1])
def test_without_a_free_slot_a_reader_is_served_without_a_session(
    tmp_path: Path, slots: int
) -> None:
    async def scenario(broker: RunningBroker) -> None:
        await broker.create_topic("orders")
        await broker.produce("orders", [b"x"])
        got = [
            await broker.fetch(fetch_request({("orders", 0): 0}, session_epoch=0)) for _ in range(2)
        ]
        assert [each.session_id > 0 for each in got] == [slots > 0, False]
        assert all(_values(each.responses[0].partitions[0]) == [b"x"] for each in got)

    run_broker_scenario(
        tmp_path, scenario, {"max.incremental.fetch.session.cache.slots": str(slots)}
    )


def test_produce_and_fetch_on_one_connection_are_answered_in_order(tmp_path: Path) -> None:
    """A fetch that waits holds back the answers behind it, not the appends."""

    async def scenario(broker: RunningBroker) -> None:
        await broker.create_topic("orders")
        fetch = broker.channel.send_nowait(
            fetch_request({("orders", 0): 0}, min_bytes=1, max_wait_ms=60_000),
            version=FETCH_VERSION,
        )
        produce = broker.channel.send_nowait(
            produce_request("orders", batch_of([b"x"], broker.now_ms)), version=12
        )
        assert _values((await fetch).responses[0].partitions[0]) == [b"x"]
        assert (await produce).responses[0].partition_responses[0].error_code == 0

    run_broker_scenario(tmp_path, scenario)
