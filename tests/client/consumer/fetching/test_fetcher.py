"""The fetcher with a played cluster: what is asked for, and that no record is lost or doubled."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.base.errors import ErrorCode, KafkaError
from headwater.client.consumer.errors import InvalidOffsetError
from headwater.client.consumer.fetching.partition_state import PositionStep
from headwater.client.consumer.polling import fetch_buffer
from headwater.client.consumer.positions.reset import NONE
from headwater.client.errors import refusal
from headwater.wire.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from headwater.wire.messages.metadata import MetadataRequest
from headwater.wire.records import Record, encode_batch
from tests.support.fakes.fetches import (
    TOPIC_ID,
    FakeBroker,
    FakeLog,
    fake_metadata,
    metadata_response,
    partition,
)
from tests.support.fakes.lone_consumer import LoneConsumer
from tests.support.tiers import rounds

LEADERS = {0: 1, 1: 1, 2: 2}


def reading(leaders: dict[int, int] | None = None) -> LoneConsumer:
    """A consumer that reads all partitions from their beginning."""
    leaders = leaders or {0: 1}
    consumer = LoneConsumer(fake_metadata(leaders))
    consumer.subscription.assign([partition(number) for number in leaders])
    for state in consumer.subscription.states():
        state.set_position(0)
    consumer.step()
    return consumer


def logs_of(consumer: LoneConsumer) -> dict[int, FakeLog]:
    return {tp.partition: FakeLog() for tp in consumer.subscription.partitions}


def step_of(consumer: LoneConsumer) -> PositionStep:
    return consumer.subscription.state(partition(0)).step


def fetch_ask(consumer: LoneConsumer) -> FetchRequest:
    (request,) = consumer.fetches
    return request


def test_one_fetch_for_each_leader_with_all_its_partitions() -> None:
    consumer = reading(LEADERS)
    assert sorted(ask.target for ask in consumer.asked(FetchRequest) if ask.target) == [1, 2]
    assert [
        [part.partition for topic in request.topics for part in topic.partitions]
        for request in consumer.fetches
    ] == [[0, 1], [2]]
    consumer.step()
    assert len(consumer.asked(FetchRequest)) == 2


def test_the_next_fetch_leaves_at_once_while_little_is_waiting() -> None:
    consumer = reading()
    broker = FakeBroker(logs_of(consumer))
    for _ in range(3):
        broker.logs[0].append(10)
    for next_offset in (10, 20, 30):
        consumer.answer_all(FetchRequest, lambda request: broker.answer(request, batch_count=1))
        consumer.step()
        assert fetch_ask(consumer).topics[0].partitions[0].fetch_offset == next_offset
    assert consumer.poll() == [(0, offset) for offset in range(30)]


def test_the_next_fetch_leaves_when_the_last_one_is_begun_if_enough_is_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fetch_buffer, "AHEAD_BYTES", 1)
    consumer = reading()
    broker = FakeBroker(logs_of(consumer))
    broker.logs[0].append(10)
    broker.logs[0].append(10)
    consumer.answer_all(FetchRequest, lambda request: broker.answer(request, batch_count=1))
    consumer.step()
    assert not consumer.fetches
    assert consumer.poll(3) == [(0, 0), (0, 1), (0, 2)]
    consumer.step()
    assert fetch_ask(consumer).topics[0].partitions[0].fetch_offset == 10


def test_what_was_asked_for_before_a_seek_is_not_handed_out() -> None:
    consumer = reading()
    broker = FakeBroker(logs_of(consumer))
    broker.logs[0].append(10)
    consumer.seek(partition(0), 7)
    consumer.answer_all(FetchRequest, broker.answer)
    assert consumer.poll() == []
    consumer.step()
    consumer.answer_all(FetchRequest, broker.answer)
    assert consumer.poll() == [(0, 7), (0, 8), (0, 9)]


def test_a_paused_partition_is_neither_fetched_nor_handed_out() -> None:
    consumer = reading({0: 1, 1: 1})
    broker = FakeBroker(logs_of(consumer))
    for log in broker.logs.values():
        log.append(2)
    consumer.answer_all(FetchRequest, broker.answer)
    consumer.subscription.state(partition(0)).is_paused = True
    assert consumer.poll() == [(1, 0), (1, 1)]
    consumer.step()
    assert [forgotten.partitions for forgotten in fetch_ask(consumer).forgotten_topics_data] == [
        [0]
    ]
    consumer.subscription.state(partition(0)).is_paused = False
    assert consumer.poll() == [(0, 0), (0, 1)]


def test_a_lost_connection_starts_a_new_session_after_a_pause() -> None:
    consumer = reading()
    broker = FakeBroker(logs_of(consumer))
    broker.logs[0].append(1)
    (ask,) = consumer.asked(FetchRequest)
    consumer.outstanding.remove(ask)
    ask.on_failure(KafkaError(ErrorCode.NETWORK_EXCEPTION), consumer.now_s)
    consumer.step()
    assert not consumer.fetches
    assert consumer.asked(MetadataRequest)
    consumer.now_s += 2.0
    consumer.step()
    assert fetch_ask(consumer).session_epoch == 0
    consumer.answer_all(FetchRequest, broker.answer)
    assert consumer.poll() == [(0, 0)]


def test_an_offset_that_does_not_exist_is_reset_after_what_is_buffered() -> None:
    consumer = reading()
    broker = FakeBroker(logs_of(consumer))
    log = broker.logs[0]
    log.append(5)
    consumer.answer_all(FetchRequest, broker.answer)
    consumer.poll(1)
    consumer.step()
    log.start_offset = log.end_offset = 100
    consumer.answer_all(FetchRequest, broker.answer)
    assert step_of(consumer) is PositionStep.FETCHING
    assert len(consumer.poll()) == 4
    consumer.now_s += 2.0
    consumer.step()
    consumer.answer_all(FetchRequest, broker.answer)
    assert step_of(consumer) is PositionStep.RESETTING


def test_without_a_reset_the_user_hears_of_an_offset_that_does_not_exist() -> None:
    consumer = LoneConsumer(fake_metadata({0: 1}), default_reset=NONE)
    consumer.subscription.assign([partition(0)])
    consumer.seek(partition(0), 50)
    consumer.step()
    broker = FakeBroker({0: FakeLog()})
    consumer.answer_all(FetchRequest, broker.answer)
    failure = consumer.side.take_failure()
    assert isinstance(failure, InvalidOffsetError)
    assert failure.topic_partition == partition(0)
    assert consumer.side.take_failure() is None


def test_a_preferred_replica_is_read_from_until_it_does_not_have_the_offset() -> None:
    consumer = reading({0: 1, 1: 2})
    data = PartitionData(partition_index=0, preferred_read_replica=2)
    topic = FetchableTopicResponse(topic_id=TOPIC_ID, partitions=[data])
    (ask,) = [ask for ask in consumer.asked(FetchRequest) if ask.target == 1]
    consumer.answer(ask, FetchResponse(session_id=9, responses=[topic]))
    (ask,) = consumer.asked(FetchRequest)
    consumer.answer(ask, FetchResponse(session_id=8))
    consumer.step()
    (ask,) = consumer.asked(FetchRequest)
    assert ask.target == 2
    assert [part.partition for part in fetch_ask(consumer).topics[0].partitions] == [0]
    data = PartitionData(partition_index=0, error_code=int(ErrorCode.OFFSET_OUT_OF_RANGE))
    topic = FetchableTopicResponse(topic_id=TOPIC_ID, partitions=[data])
    consumer.answer(ask, FetchResponse(session_id=8, responses=[topic]))
    consumer.now_s += 2.0
    consumer.step()
    assert {ask.target for ask in consumer.asked(FetchRequest)} == {1, 2}
    assert consumer.subscription.state(partition(0)).step is PositionStep.FETCHING


@pytest.mark.parametrize("why", ["no answer", "new leader", "lease over"])
def test_a_preferred_replica_is_left_for_the_leader(why: str) -> None:
    consumer = reading({0: 1, 1: 2})
    state = consumer.subscription.state(partition(0))
    data = PartitionData(partition_index=0, preferred_read_replica=2)
    topic = FetchableTopicResponse(topic_id=TOPIC_ID, partitions=[data])
    (ask,) = [ask for ask in consumer.asked(FetchRequest) if ask.target == 1]
    consumer.answer(ask, FetchResponse(session_id=9, responses=[topic]))
    (ask,) = consumer.asked(FetchRequest)
    consumer.answer(ask, FetchResponse(session_id=8))
    consumer.step()
    (ask,) = consumer.asked(FetchRequest)
    assert (ask.target, state.preferred_replica_id) == (2, 2)
    if why == "no answer":
        ask.on_failure(KafkaError(ErrorCode.REQUEST_TIMED_OUT, "It is late."), consumer.now_s)
    elif why == "new leader":
        state.current_leader_epoch = 0
        state.follow_leader(1, 1)
        assert state.step is PositionStep.VALIDATING
        state.set_position(0)
    else:
        consumer.now_s += 301.0
    consumer.step()
    assert 1 in {ask.target for ask in consumer.asked(FetchRequest)}
    assert state.preferred_replica_id == -1


def test_a_throttled_fetch_is_followed_by_a_pause() -> None:
    consumer = reading()
    consumer.answer_all(FetchRequest, lambda _: FetchResponse(session_id=1, throttle_time_ms=300))
    consumer.step()
    assert not consumer.fetches
    assert consumer.fetcher.wake_at_s(consumer.now_s) == consumer.now_s + 0.3


def test_a_damaged_batch_is_told_after_the_records_before_it_and_again() -> None:
    consumer = reading()
    good = encode_batch([Record(0, 1, None, b"0")])
    bad = bytearray(encode_batch([Record(1, 1, None, b"1")]))
    bad[-1] ^= 0xFF
    data = PartitionData(partition_index=0, high_watermark=2, records=good + bytes(bad))
    topic = FetchableTopicResponse(topic_id=TOPIC_ID, partitions=[data])
    consumer.answer_all(FetchRequest, lambda _: FetchResponse(session_id=1, responses=[topic]))
    assert consumer.poll() == [(0, 0)]
    for _ in range(2):
        try:
            consumer.poll()
        except KafkaError as error:
            assert error.code is ErrorCode.CORRUPT_MESSAGE
        else:
            raise AssertionError("a damaged batch was passed over")
    assert consumer.subscription.state(partition(0)).offset == 1


class World:
    """Random doings of cluster and user, checked record by record."""

    def __init__(self) -> None:
        self.consumer = reading(LEADERS)
        self.logs = {number: FakeLog() for number in LEADERS}
        self.brokers = {
            broker_id: FakeBroker({number: self.logs[number] for number, leader in LEADERS.items()})
            for broker_id in (1, 2)
        }
        self.next_offsets = dict.fromkeys(LEADERS, 0)

    def do(self, step: str, number: int, amount: int) -> None:
        consumer, log = self.consumer, self.logs[number]
        state = consumer.subscription.state(partition(number))
        match step:
            case "append":
                log.append(amount, gap=amount % 3)
            case "marker":
                log.append_marker()
            case "answer" | "error" | "lose" if consumer.asked(FetchRequest):
                asks = consumer.asked(FetchRequest)
                ask = asks[amount % len(asks)]
                if step == "lose":
                    consumer.outstanding.remove(ask)
                    ask.on_failure(refusal(13, None, "x"), consumer.now_s)
                    return
                assert isinstance(ask.target, int)
                errors = [number] if step == "error" else []
                broker = self.brokers[ask.target]
                assert isinstance(ask.request, FetchRequest)
                response = broker.answer(ask.request, batch_count=amount, errors=errors)
                consumer.answer(ask, response)
            case "poll":
                self.poll(amount)
            case "seek":
                offset = amount % (log.end_offset + 1)
                consumer.seek(partition(number), offset)
                self.next_offsets[number] = offset
            case "pause":
                state.is_paused = True
            case "resume":
                state.is_paused = False
            case "wait":
                consumer.now_s += amount / 10
        consumer.step()
        consumer.answer_all(MetadataRequest, lambda _: metadata_response(LEADERS))

    def poll(self, count: int) -> int:
        taken = self.consumer.side.take(count, self.consumer.now_s)
        assert len(taken) <= count
        for record in taken:
            assert not self.consumer.subscription.state(record.topic_partition).is_paused
            expected = self.logs[record.partition].visible(self.next_offsets[record.partition])
            assert record.offset == expected[0]
            assert record.value == b"%d" % record.offset
            self.next_offsets[record.partition] = record.offset + 1
        return len(taken)

    def finish(self) -> None:
        """Without further trouble everything comes."""
        for number in LEADERS:
            self.do("resume", number, 0)
        for _ in range(40):
            self.consumer.now_s += 1.0
            self.consumer.step()
            self.consumer.answer_all(MetadataRequest, lambda _: metadata_response(LEADERS))
            for ask in self.consumer.asked(FetchRequest):
                assert isinstance(ask.target, int) and isinstance(ask.request, FetchRequest)
                self.consumer.answer(ask, self.brokers[ask.target].answer(ask.request))
            while self.poll(100):
                pass
        for number, log in self.logs.items():
            assert log.visible(self.next_offsets[number]) == []
            assert self.consumer.subscription.state(partition(number)).offset == log.end_offset


STEPS = st.sampled_from(
    ["append"] * 3
    + ["answer"] * 4
    + ["poll"] * 4
    + ["marker", "error", "lose", "seek", "pause", "resume", "wait"]
)


@settings(max_examples=rounds(60, 1000), deadline=None)
@given(st.lists(st.tuples(STEPS, st.sampled_from([0, 1, 2]), st.integers(1, 12)), max_size=60))
def test_every_record_comes_once_and_in_order(steps: list[tuple[str, int, int]]) -> None:
    world = World()
    for step, number, amount in steps:
        world.do(step, number, amount)
    world.finish()
