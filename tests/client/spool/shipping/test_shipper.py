from collections.abc import Iterator
from pathlib import Path

import pytest

from headwater.base.errors import ErrorCode, KafkaError
from headwater.client.connection.retry import RetryPolicy
from headwater.client.errors import DeadlineError, UnknownTopicError
from headwater.client.producer.record_metadata import RecordMetadata
from headwater.client.spool.files.refused_log import read_refused
from headwater.client.spool.outcome import Outcome
from headwater.client.spool.shipping.shipper import Shipper
from headwater.client.spool.spool import Spool
from tests.support.fakes.producer import FakeLog
from tests.support.logs.spools import append_all, contents, record
from tests.support.waiting import eventually

_WINDOW = 10


class _World:
    """A spool, a shipper that can be replaced as after a restart, and the log it ships to."""

    def __init__(self, directory: Path) -> None:
        self.directory = str(directory)
        self.log = FakeLog()
        self.outcomes: list[tuple[int, Outcome]] = []
        self.patience_ms = 100.0
        self._open()

    def _open(self) -> None:
        self.spool = Spool(self.directory, segment_bytes=1024)
        self.shipper = Shipper(
            self.spool,
            self.log.make_producer,
            lambda number, outcome: self.outcomes.append((number, outcome)),
            window_records=_WINDOW,
            patience_ms=self.patience_ms,
            memory_ms=3_600_000,
            policy=RetryPolicy(backoff_ms=1, backoff_max_ms=5),
        )

    def close(self) -> None:
        self.shipper.stop()
        self.spool.close()

    def restart(self) -> None:
        self.close()
        self._open()
        self.shipper.start()

    def flush(self) -> None:
        self.shipper.wait_shipped(self.spool.next_number, 20)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[_World]:
    made = _World(tmp_path)
    yield made
    made.close()


def _values(count: int, first: int = 0) -> list[bytes]:
    return [b"%d" % number for number in range(first, first + count)]


def test_all_is_shipped_in_order_and_only_once(world: _World) -> None:
    append_all(world.spool, _values(35))
    world.shipper.start()
    append_all(world.spool, _values(15, 35))
    world.flush()
    assert world.log.values == _values(50)
    assert [number for number, _ in world.outcomes] == list(range(50))
    offsets = [
        outcome.offset for _, outcome in world.outcomes if isinstance(outcome, RecordMetadata)
    ]
    assert offsets == list(range(50))
    world.restart()
    assert world.spool.position == 50
    assert world.log.values == _values(50)


def test_never_more_than_the_window_is_sent_beyond_the_position(world: _World) -> None:
    world.log.is_held = True
    append_all(world.spool, _values(50))
    world.shipper.start()
    eventually(lambda: len(world.log.pending) == _WINDOW)
    world.log.release(4)
    eventually(lambda: len(world.log.topics) > _WINDOW)
    assert len(world.log.topics) <= world.spool.position + _WINDOW
    with pytest.raises(DeadlineError, match="it still holds"):
        world.shipper.wait_shipped(50, 0.05)


def test_a_restart_sends_again_only_what_was_not_acknowledged(world: _World) -> None:
    world.log.is_held = True
    append_all(world.spool, _values(30))
    world.shipper.start()
    eventually(lambda: len(world.log.pending) == _WINDOW)
    world.log.release(7)
    eventually(lambda: world.spool.position == 7)
    world.restart()
    eventually(lambda: len(world.log.pending) == _WINDOW)
    assert [delivery.value for delivery in world.log.pending] == _values(_WINDOW, 7)
    world.log.is_held = False
    world.log.release()
    world.flush()
    assert world.log.values == _values(30)


def test_what_an_earlier_record_waits_for_does_not_let_the_position_pass(world: _World) -> None:
    world.log.is_held = True
    append_all(world.spool, _values(5))
    world.shipper.start()
    eventually(lambda: len(world.log.pending) == 5)
    for delivery in world.log.pending[1:]:
        delivery.complete(RecordMetadata("t", 0, 0, 0))
    world.restart()
    assert world.spool.position == 0


def test_a_refused_record_is_set_aside_and_not_the_others_of_its_batch(world: _World) -> None:
    refused_once: set[bytes | None] = set()

    def refuses(value: bytes | None) -> KafkaError | None:
        # The batch of 3, 4 and 5 is refused because of 4.
        if value == b"4" or (value in (b"3", b"5") and value not in refused_once):
            refused_once.add(value)
            return KafkaError(ErrorCode.INVALID_RECORD, "One of the records has no key.")
        return None

    world.log.refuses = refuses
    append_all(world.spool, _values(20))
    world.shipper.start()
    world.flush()
    assert sorted(world.log.values, key=lambda value: int(value or b"")) == [
        value for value in _values(20) if value != b"4"
    ]
    [refused] = read_refused(world.directory)
    assert refused.record == record(b"4")
    assert (refused.code, "no key" in refused.reason) == (ErrorCode.INVALID_RECORD, True)
    assert world.shipper.refused_count == 1
    assert [n for n, outcome in world.outcomes if isinstance(outcome, KafkaError)] == [4]
    eventually(lambda: world.spool.position == 20)


def test_what_the_producer_does_not_even_take_is_set_aside_too(world: _World) -> None:
    too_large = KafkaError(ErrorCode.MESSAGE_TOO_LARGE)
    world.log.raises = lambda topic: too_large if topic == "large" else None
    world.shipper.start()
    for _ in range(3):
        append_all(world.spool, _values(5))
        world.spool.append(record(b"large", topic="large"))
    world.flush()
    world.restart()
    world.spool.append(record(b"large", topic="large"))
    world.flush()
    assert world.log.values == _values(5) * 3
    assert [refused.record.value for refused in read_refused(world.directory)] == [b"large"] * 4


def test_a_broker_that_is_away_holds_everything_up_and_loses_nothing(world: _World) -> None:
    attempts = 0

    def raises(topic: str) -> KafkaError | None:
        nonlocal attempts
        attempts += 1
        return DeadlineError("No broker answers.") if attempts < 20 else None

    world.log.raises = raises
    append_all(world.spool, _values(5))
    world.shipper.start()
    world.flush()
    assert attempts > 20
    assert world.log.values == _values(5)
    assert world.log.producer_count == 1


def test_a_topic_that_is_missing_is_waited_for(world: _World) -> None:
    world.patience_ms = 3_600_000
    world.restart()
    missing_count = 0

    def raises(topic: str) -> KafkaError | None:
        nonlocal missing_count
        missing_count += 1
        error = DeadlineError("No such topic in time.")
        error.__cause__ = UnknownTopicError.topic(topic)
        return error if missing_count < 5 else None

    world.log.raises = raises
    append_all(world.spool, _values(3))
    world.flush()
    assert world.log.values == _values(3)
    assert read_refused(world.directory) == []


def test_a_topic_that_stays_missing_does_not_hold_up_the_others(world: _World) -> None:
    asked = 0

    def raises(topic: str) -> KafkaError | None:
        nonlocal asked
        if topic != "typo":
            return None
        asked += 1
        error = DeadlineError("No such topic in time.")
        error.__cause__ = UnknownTopicError.topic(topic)
        return error

    world.log.raises = raises
    world.shipper.start()
    for value in _values(10):
        world.spool.append(record(value, topic="typo"))
        world.spool.append(record(value))
    world.flush()
    assert world.log.values == _values(10)
    assert len(read_refused(world.directory)) == 10
    # Waited for once, not once for each record.
    assert asked < 1000
    asked = 0
    world.spool.append(record(b"", topic="typo"))
    world.flush()
    assert asked == 0


def test_a_topic_that_is_deleted_while_its_records_are_under_way(world: _World) -> None:
    world.log.is_held = True
    world.shipper.start()
    world.spool.append(record(b"deleted", topic="deleted"))
    append_all(world.spool, _values(3))
    eventually(lambda: len(world.log.pending) == 4)

    def raises(topic: str) -> KafkaError | None:
        error = DeadlineError("No such topic in time.")
        error.__cause__ = UnknownTopicError.topic(topic)
        return error if topic == "deleted" else None

    world.log.raises = raises
    world.log.is_held = False
    world.flush()
    assert world.log.values == _values(3)
    assert [refused.record.value for refused in read_refused(world.directory)] == [b"deleted"]


def test_a_producer_that_cannot_go_on_is_replaced_and_order_is_kept(world: _World) -> None:
    world.log.is_held = True
    append_all(world.spool, _values(20))
    world.shipper.start()
    eventually(lambda: len(world.log.pending) == _WINDOW)
    world.log.release(3)
    world.log.is_spent = KafkaError(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
    world.log.is_held = False
    world.log.release()
    world.flush()
    assert world.log.values == _values(20)
    assert world.log.producer_count == 2


def test_damaged_records_are_counted_and_the_rest_is_shipped(world: _World) -> None:
    append_all(world.spool, [bytes(100)] * 30)
    first = sorted(Path(world.directory).glob("*.spool"))[0]
    data = bytearray(first.read_bytes())
    data[500] ^= 1
    first.write_bytes(data)
    world.log.is_held = True
    world.shipper.start()
    eventually(lambda: world.shipper.damaged_count)
    # What was read of the file and is not delivered yet would be lost with it.
    assert first.exists()
    world.log.is_held = False
    world.log.release()
    world.flush()
    assert 0 < world.shipper.damaged_count < 10
    assert len(world.log.values) + world.shipper.damaged_count == 30
    assert sorted(number for number, _ in world.outcomes) == list(range(30))
    eventually(lambda: first.with_suffix(".spool.damaged").exists())


def test_stopping_leaves_the_rest_in_the_spool(world: _World) -> None:
    world.log.is_held = True
    append_all(world.spool, _values(30))
    world.shipper.start()
    eventually(lambda: len(world.log.pending) == _WINDOW)
    world.log.release(2)
    world.shipper.stop()
    assert contents(world.spool) == [(n, b"%d" % n) for n in range(2, 30)]
