"""What waits comes out in order, never early, and crowded partitions are paused."""

from hypothesis import given
from hypothesis import strategies as st

from headwater.client.consumer.record import ConsumerRecord
from headwater.client.producer.delay_levels import level_for
from headwater.delivery.delay_service.delay_queue import DelayQueue, Waiting, due_at
from headwater.wire.records import TimestampType


def record(partition: int, offset: int, timestamp_ms: int) -> ConsumerRecord:
    return ConsumerRecord(
        "__delay_1s",
        partition,
        offset,
        timestamp_ms,
        TimestampType.CREATE_TIME,
        None,
        b"",
        (),
        0,
    )


def queue_of(delay_ms: int = 1000, *, count_max: int = 100, bytes_max: int = 10**9) -> DelayQueue:
    queue = DelayQueue(delay_ms, count_max, bytes_max)
    queue.assign(range(4))
    return queue


def take_all(queue: DelayQueue, now_ms: int) -> list[tuple[int, int]]:
    taken = queue.take_due(now_ms, 10**6, 10**9)
    queue.done(taken)
    return [(waiting.partition, waiting.offset) for waiting in taken]


def test_the_worked_example_17_seconds_arrive_after_30() -> None:
    level = level_for(17_000)
    queue = queue_of(level.delay_ms)
    queue.add(record(0, 0, 1_000_000), 1, 1_000_003)
    wanted_ms = 1_000_000 + 17_000
    assert take_all(queue, wanted_ms) == []
    assert take_all(queue, 1_029_999) == []
    assert queue.next_due_ms is not None
    assert queue.next_due_ms - wanted_ms == 13_000
    assert take_all(queue, 1_030_000) == [(0, 0)]


def test_partitions_interleave_by_when_they_are_due() -> None:
    queue = queue_of()
    for partition, timestamps in enumerate([(10, 40), (20, 30), (10, 50)]):
        for offset, timestamp_ms in enumerate(timestamps):
            queue.add(record(partition, offset, timestamp_ms), 1, 100)
    assert take_all(queue, 1029) == [(0, 0), (2, 0), (1, 0)]
    assert take_all(queue, 1050) == [(1, 1), (0, 1), (2, 1)]


def test_a_clock_that_is_fast_counts_from_now_on_and_none_at_all_too() -> None:
    assert due_at(5_000_000, 1000, 100) == 1100
    assert due_at(-1, 1000, 100) == 1100
    assert due_at(50, 1000, 100) == 1050


_EVENTS = st.lists(
    st.tuples(
        st.sampled_from(["add", "take", "fail", "drop", "truncate"]),
        st.integers(0, 3),
        st.integers(-2000, 2000),
        st.integers(0, 700),
    ),
    max_size=60,
)


@given(_EVENTS)
def test_each_once_in_order_of_its_partition_and_none_early(
    events: list[tuple[str, int, int, int]],
) -> None:
    """A model: what is done of a partition is always everything up to some offset."""
    queue = queue_of()
    now_ms = 10_000
    fetched = [0] * 4
    done = [0] * 4
    for what, partition, skew_ms, step_ms in events:
        now_ms += step_ms
        if what in ("add", "truncate"):
            if what == "truncate":
                # What was fetched and not sent is not there any more, as the next fetch tells.
                fetched[partition] = done[partition]
            queue.add(record(partition, fetched[partition], now_ms + skew_ms), 7, now_ms)
            fetched[partition] += 1
        elif what == "drop":
            # The group gives it back at once: reading begins where it was committed.
            queue.drop({partition})
            queue.assign({partition})
            fetched[partition] = done[partition]
        else:
            taken = queue.take_due(now_ms, 3, 10**9)
            assert taken == sorted(taken, key=lambda each: each[:3])
            assert all(each.due_ms <= now_ms for each in taken)
            if what == "fail":
                queue.put_back(taken)
                continue
            for each in taken:
                assert each.offset == done[each.partition]
                done[each.partition] += 1
            queue.done(taken)
    left = take_all(queue, now_ms + 10_000)
    for each_partition, offset in left:
        assert offset == done[each_partition]
        done[each_partition] += 1
    assert len(queue) == 0


def test_a_round_is_bounded_by_count_and_bytes_but_holds_one() -> None:
    queue = queue_of()
    for offset in range(5):
        queue.add(record(0, offset, 0), 60, 0)
    assert [each.offset for each in queue.take_due(1000, 10, 50)] == [0]
    assert [each.offset for each in queue.take_due(1000, 10, 130)] == [1, 2]
    assert [each.offset for each in queue.take_due(1000, 1, 1000)] == [3]


def test_a_partition_with_many_waiting_is_paused_until_half_is_gone() -> None:
    queue = queue_of(count_max=4)
    for offset in range(4):
        assert queue.to_pause() == set()
        queue.add(record(1, offset, offset), 1, 0)
    assert queue.to_pause() == {1}
    assert queue.to_pause() == set()
    taken = queue.take_due(10**6, 1, 10**6)
    queue.done(taken)
    assert queue.to_resume() == set()
    queue.done(queue.take_due(10**6, 1, 10**6))
    assert queue.to_resume() == {1}
    assert queue.to_resume() == set()


def test_partitions_share_the_bytes_of_a_level() -> None:
    queue = queue_of(bytes_max=400)
    queue.add(record(0, 0, 0), 99, 0)
    assert queue.to_pause() == set()
    queue.add(record(0, 1, 0), 1, 0)
    queue.add(record(2, 0, 0), 5, 0)
    assert queue.to_pause() == {0}


@given(st.lists(st.integers(0, 3), max_size=40), st.integers(1, 8))
def test_counts_follow_what_comes_and_goes(partitions: list[int], count_max: int) -> None:
    queue = queue_of(count_max=count_max)
    counts = [0] * 4
    for partition in partitions:
        queue.add(record(partition, counts[partition], 0), 1, 0)
        counts[partition] += 1
    assert len(queue) == len(partitions)
    crowded = {number for number, count in enumerate(counts) if count >= count_max}
    assert queue.to_pause() == crowded
    queue.drop({0})
    assert len(queue) == len(partitions) - counts[0]
    take_all(queue, 10**6)
    assert queue.to_resume() == crowded - {0}


def test_what_turns_out_to_be_sent_is_forgotten() -> None:
    queue = queue_of()
    for offset in range(4):
        queue.add(record(0, offset, 0), 1, 0)
        queue.add(record(1, offset, 0), 1, 0)
    queue.forget_done({0: 3})
    assert len(queue) == 5
    assert [offset for partition, offset in take_all(queue, 1000) if partition == 0] == [3]


def test_what_is_not_read_here_is_left_out() -> None:
    queue = DelayQueue(1000, 10, 10)
    queue.add(record(0, 0, 0), 1, 0)
    queue.put_back([Waiting(0, 0, 0, 1, record(0, 0, 0))])
    assert (len(queue), queue.next_due_ms) == (0, None)
