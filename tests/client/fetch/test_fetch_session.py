import random
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.base.errors import ErrorCode
from headwater.base.ids import TopicPartition
from headwater.client.fetch.session import (
    EPOCH_MAX,
    FULL_EPOCH,
    NO_SESSION_ID,
    SESSION_ERRORS,
    WITHOUT_SESSION_EPOCH,
    FetchPosition,
    FetchSession,
)

ID = uuid.UUID(int=1)
PARTITIONS = [TopicPartition("orders", number) for number in range(4)]


def wanted(**offsets: int) -> dict[TopicPartition, FetchPosition]:
    return {
        TopicPartition("orders", int(name[1:])): FetchPosition(ID, offset)
        for name, offset in offsets.items()
    }


def test_only_what_changed_is_named() -> None:
    session = FetchSession()
    first = session.next_request(wanted(p0=5, p1=6))
    assert first == (NO_SESSION_ID, FULL_EPOCH, wanted(p0=5, p1=6), {})
    session.answered(0, 77)
    second = session.next_request(wanted(p0=5, p1=8, p2=0))
    assert second == (77, 1, wanted(p1=8, p2=0), {})
    session.answered(0, 77)
    third = session.next_request(wanted(p0=5, p1=8))
    assert third == (77, 2, {}, {TopicPartition("orders", 2): ID})


def test_a_broker_without_room_for_sessions_gets_full_requests() -> None:
    session = FetchSession()
    for _ in range(2):
        request = session.next_request(wanted(p0=5))
        assert request == (NO_SESSION_ID, FULL_EPOCH, wanted(p0=5), {})
        session.answered(0, NO_SESSION_ID)


def test_without_sessions_every_request_is_full_and_says_so() -> None:
    session = FetchSession(use_session=False)
    for _ in range(2):
        request = session.next_request(wanted(p0=5))
        assert request == (NO_SESSION_ID, WITHOUT_SESSION_EPOCH, wanted(p0=5), {})
        session.answered(0, 0)


@pytest.mark.parametrize("code", [*SESSION_ERRORS, ErrorCode.UNKNOWN_SERVER_ERROR, None])
def test_after_trouble_it_starts_again(code: int | None) -> None:
    session = FetchSession()
    session.next_request(wanted(p0=5))
    session.answered(0, 77)
    session.next_request(wanted(p0=6))
    if code is None:
        session.failed()
    else:
        session.answered(code, 77)
    request = session.next_request(wanted(p0=6))
    assert request == (NO_SESSION_ID, FULL_EPOCH, wanted(p0=6), {})


def test_a_topic_that_was_created_again_is_another_one() -> None:
    session = FetchSession()
    session.next_request(wanted(p0=5))
    session.answered(0, 77)
    again = {PARTITIONS[0]: FetchPosition(uuid.UUID(int=2), 0)}
    assert session.next_request(again) == (NO_SESSION_ID, FULL_EPOCH, again, {})


def test_the_epoch_wraps_around_past_zero() -> None:
    session = FetchSession()
    session.next_request(wanted(p0=5))
    session.answered(0, 77)
    session._epoch = EPOCH_MAX
    assert session.next_request(wanted(p0=5)).epoch == EPOCH_MAX
    session.answered(0, 77)
    assert session.next_request(wanted(p0=5)).epoch == 1


class BrokerSessions:
    """What a broker keeps: the partitions of the session, and the epoch that must come next."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self.session_id = NO_SESSION_ID
        self.epoch = 0
        self.partitions: dict[TopicPartition, FetchPosition] = {}

    def answer(
        self,
        session_id: int,
        epoch: int,
        named: dict[TopicPartition, FetchPosition],
        forgotten: dict[TopicPartition, uuid.UUID],
    ) -> tuple[int, int]:
        if epoch == FULL_EPOCH:
            self.partitions = dict(named)
            self.session_id = self._rng.choice([NO_SESSION_ID, self._rng.randrange(1, 1000)])
            self.epoch = 1
            return 0, self.session_id
        if session_id != self.session_id:
            return ErrorCode.FETCH_SESSION_ID_NOT_FOUND, NO_SESSION_ID
        if epoch != self.epoch:
            return ErrorCode.INVALID_FETCH_SESSION_EPOCH, NO_SESSION_ID
        self.epoch += 1
        self.partitions |= named
        for partition in forgotten:
            del self.partitions[partition]
        return 0, self.session_id


@given(seed=st.integers(0, 2**32))
def test_the_broker_always_knows_what_is_wanted(seed: int) -> None:
    rng = random.Random(seed)
    session, broker = FetchSession(), BrokerSessions(rng)
    refused_in_a_row = 0
    for _ in range(60):
        chosen = rng.sample(PARTITIONS, rng.randrange(1, 5))
        positions = {
            partition: FetchPosition(uuid.UUID(int=rng.choice([1, 1, 1, 2])), rng.randrange(3))
            for partition in chosen
        }
        request = session.next_request(positions)
        fate = rng.random()
        if fate < 0.1:
            session.failed()
            continue
        if fate < 0.2:
            # The broker has dropped the session for another client's.
            broker.session_id = -5
        error_code, session_id = broker.answer(*request)
        if fate < 0.3:
            # The answer is lost.
            session.failed()
            continue
        session.answered(error_code, session_id)
        refused_in_a_row = refused_in_a_row + 1 if error_code else 0
        assert refused_in_a_row < 2
        if not error_code:
            assert broker.partitions == positions
