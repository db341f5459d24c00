"""Prepared transactions that somebody else ends by name."""

from collections.abc import Iterator

import pytest

from headwater.client.admin import Admin, require_all
from headwater.client.producer.idempotence.identity import PreparedTransactionState
from headwater.client.producer.producer import Producer
from headwater.testing.running_broker import RunningBroker
from tests.support.values.whole_topic import create_topic, read_topic


@pytest.fixture(scope="module")
def broker() -> Iterator[RunningBroker]:
    with RunningBroker() as broker:
        yield broker


@pytest.fixture
def admin(broker: RunningBroker) -> Iterator[Admin]:
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        yield admin


def prepare(broker: RunningBroker, key: str, topic: str, value: bytes) -> PreparedTransactionState:
    with Producer(
        bootstrap_servers=broker.bootstrap,
        transactional_id=key,
        transaction_two_phase_commit_enable=True,
    ) as producer:
        producer.init_transactions(keep_prepared=True)
        producer.begin_transaction()
        producer.send(topic, value, partition=0)
        return producer.prepare_transaction()


def seen(broker: RunningBroker, topic: str) -> list[bytes]:
    return read_topic(broker.bootstrap, topic, 1)[0]


def test_they_are_found_and_ended_by_name(broker: RunningBroker, admin: Admin) -> None:
    topic = create_topic(broker.bootstrap, "by-name", 1)
    states = {f"name.{n}": prepare(broker, f"name.{n}", topic, b"%d" % n) for n in range(3)}
    assert admin.open_transactions(r"name\.[0-9]") == states
    assert admin.open_transactions(r"name\.[12]") == {
        key: states[key] for key in ("name.1", "name.2")
    }
    some = {key: states[key] for key in ("name.0", "name.2")}
    assert require_all(admin.end_transactions(some, is_commit=True)) == {
        "name.0": True,
        "name.2": True,
    }
    assert require_all(admin.end_transactions({"name.1": states["name.1"]}, is_commit=False))
    assert seen(broker, topic) == [b"0", b"2"]
    assert admin.open_transactions(r"name\..*") == {}


def test_what_is_over_stays_as_it_is(broker: RunningBroker, admin: Admin) -> None:
    topic = create_topic(broker.bootstrap, "over", 1)
    first = {"over": prepare(broker, "over", topic, b"first")}
    require_all(admin.end_transactions(first, is_commit=True))
    # The same again, as one who did not hear the answer would do.
    assert require_all(admin.end_transactions(first, is_commit=True)) == {"over": True}
    second = {"over": prepare(broker, "over", topic, b"second")}
    for is_commit in (True, False):
        assert require_all(admin.end_transactions(first, is_commit=is_commit)) == {"over": False}
    assert admin.open_transactions("over") == second
    require_all(admin.end_transactions(second, is_commit=True))
    assert seen(broker, topic) == [b"first", b"second"]


def test_one_that_was_taken_over_and_kept(broker: RunningBroker, admin: Admin) -> None:
    topic = create_topic(broker.bootstrap, "kept", 1)
    state = prepare(broker, "kept", topic, b"kept")
    taken = require_all(admin.take_over_transactions(["kept"]))["kept"]
    assert taken.kept == state
    assert taken.producer.epoch > state.epoch
    # The name is still that of who wrote it.
    assert admin.open_transactions("kept") == {"kept": state}
    assert require_all(admin.end_transactions({"kept": state}, is_commit=True)) == {"kept": True}
    assert seen(broker, topic) == [b"kept"]
    nothing = require_all(admin.take_over_transactions(["kept"]))["kept"]
    assert not nothing.kept.exists


def test_an_id_that_nobody_has(admin: Admin) -> None:
    unknown = {"nobody": PreparedTransactionState(4711, 3)}
    assert require_all(admin.end_transactions(unknown, is_commit=True)) == {"nobody": False}
    assert admin.open_transactions("nobody") == {}
