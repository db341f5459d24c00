"""Which session makes room for another, and what a session tells its reader."""

import random
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import ZERO_TOPIC_ID
from headwater.broker.fetch.session import FetchSession
from headwater.broker.fetch.sessions import EVICTION_MS, FetchSessions
from headwater.replication.fetch import FetchedPartition, FetchTarget
from headwater.replication.partition.partition_read import PartitionRead
from headwater.sim.campaigns.logs import new_disk
from headwater.storage.disk.files import FileRegion
from headwater.storage.log_reads import LogRead


def _targets(count: int) -> list[FetchTarget]:
    return [FetchTarget("orders", ZERO_TOPIC_ID, number, 0, 1000) for number in range(count)]


def _sessions(slots: int) -> FetchSessions:
    return FetchSessions(lambda: slots, random.Random(1))


def _start(
    sessions: FetchSessions, size: int, now_ms: int, *, is_privileged: bool = False
) -> FetchSession | None:
    return sessions.start_session(
        _targets(size), by_id=False, replica_id=2 if is_privileged else -1, now_ms=now_ms
    )


def test_a_session_that_was_not_used_for_long_makes_room() -> None:
    sessions = _sessions(2)
    first, second = _start(sessions, 5, 0), _start(sessions, 5, 0)
    assert first is not None
    assert second is not None
    sessions.continue_session(first.session_id, 1, [], [], by_id=False, now_ms=EVICTION_MS)
    assert _start(sessions, 1, EVICTION_MS) is None
    assert _start(sessions, 1, EVICTION_MS + 1) is not None
    assert sessions.evicted_count == 1
    with pytest.raises(KafkaError) as refusal:
        sessions.continue_session(second.session_id, 1, [], [], by_id=False, now_ms=0)
    assert refusal.value.code is ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_after_a_while_a_smaller_session_makes_room_for_a_larger_one() -> None:
    sessions = _sessions(1)
    small = _start(sessions, 2, 0)
    assert small is not None
    sessions.continue_session(small.session_id, 1, [], [], by_id=False, now_ms=EVICTION_MS)
    late_ms = EVICTION_MS + 1
    assert _start(sessions, 2, late_ms) is None
    assert _start(sessions, 3, late_ms) is not None


def test_a_brokers_session_takes_a_consumers_place_and_not_the_other_way_round() -> None:
    sessions = _sessions(1)
    consumer = _start(sessions, 50, 0)
    assert consumer is not None
    sessions.continue_session(consumer.session_id, 1, [], [], by_id=False, now_ms=EVICTION_MS)
    late_ms = EVICTION_MS + 1
    broker = _start(sessions, 2, late_ms, is_privileged=True)
    assert broker is not None
    sessions.continue_session(
        broker.session_id, 1, [], [], by_id=False, replica_id=2, now_ms=late_ms * 2
    )
    assert _start(sessions, 50, late_ms * 2) is None


def test_a_session_is_nobodys_but_its_readers() -> None:
    sessions = _sessions(2)
    broker, consumer = _start(sessions, 2, 0, is_privileged=True), _start(sessions, 2, 0)
    assert broker is not None
    assert consumer is not None
    for session, replica_id in ((broker, -1), (broker, 3), (consumer, 2)):
        with pytest.raises(KafkaError) as refusal:
            sessions.continue_session(
                session.session_id, 1, [], [], by_id=False, replica_id=replica_id, now_ms=0
            )
        assert refusal.value.code is ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        sessions.close_session(session.session_id, replica_id)
    assert len(sessions) == 2
    sessions.close_session(broker.session_id, 2)
    sessions.close_session(consumer.session_id)
    assert len(sessions) == 0


def test_a_session_without_partitions_is_not_worth_a_slot() -> None:
    assert _start(_sessions(5), 0, 0) is None


def test_epochs_count_up_and_start_over() -> None:
    session = FetchSession(7, _targets(1), by_id=False, now_ms=0)
    assert session.epoch == 1
    session.epoch = 2**31 - 1
    session.advance(5)
    assert (session.epoch, session.used_ms) == (1, 5)


_DISK = new_disk()
_FILE = _DISK.open("/file", create=True)


def _read(size: int, high_watermark: int, log_start: int = 0) -> PartitionRead:
    region = FileRegion(_FILE, 0, size) if size else None
    log_read = LogRead(region, high_watermark)
    return PartitionRead(log_read, high_watermark, high_watermark, log_start, None)


@given(
    st.lists(
        st.dictionaries(
            st.integers(0, 3),
            st.tuples(st.sampled_from([0, 100]), st.integers(0, 2), st.integers(0, 1)),
        ),
        max_size=12,
    )
)
def test_a_reader_hears_of_a_partition_if_and_only_if_there_is_news(
    rounds: list[dict[int, tuple[int, int, int]]],
) -> None:
    """A model remembers per partition what the reader was told last."""
    targets = _targets(4)
    session = FetchSession(7, targets, by_id=False, now_ms=0)
    told: dict[int, tuple[int, int]] = {}
    for changes in rounds:
        order = [each.partition for each in session.targets()]
        fetched = [
            FetchedPartition(targets[number], read=_read(*changes[number]))
            for number in order
            if number in changes
        ]
        news = [each.target.partition for each in session.take_note(fetched)]
        expected = [
            number
            for number in order
            if number in changes and (changes[number][0] or told.get(number) != changes[number][1:])
        ]
        assert news == expected
        told.update({number: change[1:] for number, change in changes.items()})
        # Whoever gave records is served after those who did not.
        served = [number for number in order if changes.get(number, (0,))[0]]
        others = [number for number in order if number not in served]
        assert [each.partition for each in session.targets()] == others + served


def test_an_error_is_repeated_until_it_is_gone() -> None:
    target = FetchTarget("", uuid.UUID(int=5), 0, 0, 1000)
    session = FetchSession(7, [target], by_id=True, now_ms=0)
    failed = FetchedPartition(target, error=KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, "gone"))
    assert [len(session.take_note([failed])) for _ in range(3)] == [1, 1, 1]
    healed = FetchedPartition(target, read=_read(0, 0))
    assert [len(session.take_note([healed])) for _ in range(3)] == [1, 0, 0]
