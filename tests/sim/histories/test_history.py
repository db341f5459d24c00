import uuid

import pytest

from headwater.base.ids import TopicPartition
from headwater.sim.checkers.every_promise import check_every_promise
from headwater.sim.checkers.foreign_record import check_nothing_foreign
from headwater.sim.checkers.high_watermark import HighWatermarks
from headwater.sim.checkers.record_order import check_order
from headwater.sim.checkers.topic_life import check_topics
from headwater.sim.histories.history import History, PropertyViolated, Sent, Stored

ORDERS = TopicPartition("orders", 0)
OTHER = TopicPartition("orders", 1)
ID = uuid.UUID(int=7)


def history_of_three() -> History:
    """An idempotent client sent three records; all are acknowledged from offset 5 on."""
    history = History()
    values = [history.send(Sent("p", number, ORDERS, True)) for number in range(3)]
    history.acknowledge(ORDERS, 5, values)
    history.topics["orders"] = ID
    return history


def stored(*values: str, first: int = 5) -> list[Stored]:
    return [Stored(offset, value.encode()) for offset, value in enumerate(values, first)]


def test_a_sound_world_passes_every_check() -> None:
    history = history_of_three()
    check_every_promise(history, {ORDERS: stored("p/0", "p/1", "p/2")}, {"orders": ID, "more": ID})
    assert history.acknowledged_count == 3
    assert history.acknowledged_end(ORDERS) == 8
    assert history.acknowledged_end(OTHER) == 0


@pytest.mark.parametrize(
    ("property_name", "records"),
    [
        ("nothing acknowledged is lost", stored("p/0", "p/1")),
        ("nothing acknowledged is lost", stored("p/0", "p/1", "p/2", first=4)),
        ("only what was sent is stored", stored("p/0", "p/1", "p/2", "p/3")),
        ("an idempotent record is stored once", stored("p/0", "p/1", "p/2", "p/1")),
        ("offsets have no gaps", [*stored("p/0", "p/1"), Stored(8, b"p/2")]),
    ],
)
def test_each_violation_is_found(property_name: str, records: list[Stored]) -> None:
    with pytest.raises(PropertyViolated, match=property_name):
        check_every_promise(history_of_three(), {ORDERS: records}, {"orders": ID})


def test_a_record_in_another_partition_is_foreign_there() -> None:
    with pytest.raises(PropertyViolated, match="only what was sent"):
        check_nothing_foreign(history_of_three(), {OTHER: stored("p/0")})


def test_records_in_another_order_than_sent_are_found() -> None:
    history = History()
    for number in range(2):
        history.send(Sent("p", number, ORDERS, True))
    with pytest.raises(PropertyViolated, match="the order of a producer is kept"):
        check_order(history, {ORDERS: stored("p/1", "p/0")})


def test_repetitions_of_a_client_that_is_not_idempotent_are_no_fault() -> None:
    history = History()
    for number in range(2):
        history.send(Sent("p", number, ORDERS, False))
    check_every_promise(history, {ORDERS: stored("p/0", "p/0", "p/1", "p/0")}, {})


def test_an_offset_that_is_acknowledged_twice_is_found_at_once() -> None:
    history = history_of_three()
    history.acknowledge(ORDERS, 5, [b"p/0"])
    with pytest.raises(PropertyViolated, match="never replaced"):
        history.acknowledge(ORDERS, 5, [b"p/9"])


@pytest.mark.parametrize("topics", [{}, {"orders": uuid.UUID(int=8)}])
def test_a_topic_that_is_gone_or_another_one_is_found(topics: dict[str, uuid.UUID]) -> None:
    with pytest.raises(PropertyViolated, match="created topics stay"):
        check_topics(history_of_three(), topics)


def test_a_deleted_topic_that_is_back_is_found() -> None:
    history = history_of_three()
    history.deleted.add(uuid.UUID(int=9))
    check_topics(history, {"orders": ID, "again": uuid.UUID(int=10)})
    with pytest.raises(PropertyViolated, match="deleted topics stay away"):
        check_topics(history, {"orders": ID, "gone": uuid.UUID(int=9)})


def test_a_high_watermark_that_goes_back_is_found() -> None:
    seen = HighWatermarks(history_of_three())
    for offset in (3, 3, 9):
        seen.observe(ORDERS, offset)
    seen.observe(OTHER, 1)
    with pytest.raises(PropertyViolated, match="never goes back"):
        seen.observe(ORDERS, 8)


@pytest.mark.parametrize("offset", [8, 9, 12])
def test_after_a_power_loss_it_may_go_back_to_what_was_acknowledged(offset: int) -> None:
    seen = HighWatermarks(history_of_three())
    seen.observe(ORDERS, 10)
    seen.power_lost()

    with pytest.raises(PropertyViolated, match="never goes back"):
        seen.observe(ORDERS, 7)
    seen.observe(ORDERS, offset)
