"""Admin operations on delayed messages, on a broker with a stand-in for what delays them."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from headwater import Admin, MessageId, SenderId, TopicPartition
from headwater.base.errors import ErrorCode, KafkaError
from headwater.client.admin import require_all
from headwater.client.errors import SeveralFailedError, UnknownTopicError
from headwater.client.kafka_errors import ResourceNotFoundError, UnsupportedVersionError
from headwater.net.peer_session import PeerSession
from headwater.wire.api_keys import DELAY_APIS
from headwater.wire.schema import Message
from tests.support.brokers.delaying_broker import DelayingBroker, delaying_broker, refill

FIRST, SECOND, OTHER = (
    MessageId("orders", 0, 3),
    MessageId("orders", 0, 4),
    MessageId("orders", 1, 0),
)
MINE = SenderId("orders", b"mine")


@pytest.fixture(scope="module")
def running() -> Iterator[DelayingBroker]:
    with delaying_broker() as running:
        yield running


@pytest.fixture(scope="module")
def connected(running: DelayingBroker) -> Iterator[Admin]:
    with Admin(bootstrap_servers=running.bootstrap) as admin:
        yield admin


@pytest.fixture
def admin(running: DelayingBroker, connected: Admin) -> Admin:
    refill(running.delays)
    return connected


def test_a_list_is_of_all_partitions_and_soonest_first(admin: Admin) -> None:
    listing = admin.list_delayed("orders")
    assert [each.id for each in listing.messages] == [SECOND, OTHER, FIRST]
    assert not listing.has_more
    first = listing.messages[-1]
    assert (first.due_ms, first.sent_ms, first.expires_ms) == (3000, 500, None)
    assert (first.sender_id, first.key, first.size_bytes) == (b"mine", b"k", 10)
    assert listing.messages[0].sender_id is None


def test_a_list_can_be_narrowed(admin: Admin) -> None:
    def listed(**search: object) -> list[MessageId]:
        return [each.id for each in admin.list_delayed("orders", **search).messages]  # type: ignore[arg-type]

    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    assert listed(partitions=[1]) == [OTHER]
    assert listed(due_from=2500) == [OTHER, FIRST]
    assert listed(due_to=epoch + timedelta(milliseconds=2500)) == [SECOND, OTHER]
    listing = admin.list_delayed("orders", limit=2)
    assert [each.id for each in listing.messages] == [SECOND, OTHER]
    assert listing.has_more
    with pytest.raises(UnknownTopicError, match="no partition 7"):
        listed(partitions=[7])
    with pytest.raises(ValueError, match="at least 1"):
        listed(limit=0)


def test_messages_are_shown_by_either_name(admin: Admin) -> None:
    shown = admin.describe_delayed(["orders-0@4", MINE, "orders-1@77"])
    assert list(shown) == [SECOND, MINE, MessageId("orders", 1, 77)]
    missing = shown.pop(MessageId("orders", 1, 77))
    assert isinstance(missing, ResourceNotFoundError)
    assert "orders-1@77" in str(missing)
    found = require_all(shown)
    assert [each.id for each in found[SECOND]] == [SECOND]
    assert [each.id for each in found[MINE]] == [FIRST, OTHER]


def test_messages_are_cancelled(running: DelayingBroker, admin: Admin) -> None:
    assert admin.cancel_delayed("orders-0@4") == {SECOND: [SECOND]}
    assert admin.cancel_delayed(MINE) == {MINE: [FIRST, OTHER]}
    assert [each.id for each in admin.list_delayed("orders").messages] == []
    with pytest.raises(ResourceNotFoundError, match="No message waits as orders-0@4"):
        admin.cancel_delayed("orders-0@4")
    with pytest.raises(ResourceNotFoundError, match="sender:mine in orders"):
        admin.cancel_delayed(MINE)
    refill(running.delays)
    in_one = SenderId("orders", b"mine", 1)
    assert admin.cancel_delayed([in_one]) == {in_one: [OTHER]}


def test_more_changes_than_a_broker_takes_at_once(running: DelayingBroker, admin: Admin) -> None:
    names = [SenderId("orders", b"nobody's %d" % number) for number in range(45)]
    many = [MessageId("orders", 0, 100 + number) for number in range(1_010)]
    outcomes = admin.cancel_delayed([*names, *many, FIRST], raise_errors=False)
    assert len(outcomes) == len(names) + len(many) + 1
    failed = {
        name for name, outcome in outcomes.items() if isinstance(outcome, ResourceNotFoundError)
    }
    assert failed == {*names, *many}
    assert FIRST.offset not in running.delays.at("orders").messages


def test_what_fails_is_told_or_raised(admin: Admin) -> None:
    outcomes = admin.cancel_delayed(
        ["orders-0@3", "orders-0@99", "orders-1@99"], raise_errors=False
    )
    assert outcomes.pop(FIRST) == [FIRST]
    errors = [outcome for outcome in outcomes.values() if isinstance(outcome, KafkaError)]
    assert [error.code for error in errors] == [ErrorCode.RESOURCE_NOT_FOUND] * 2
    with pytest.raises(SeveralFailedError, match="2 of 2 failed"):
        admin.cancel_delayed(["orders-0@99", "orders-1@99"])
    with pytest.raises(UnknownTopicError):
        admin.cancel_delayed("nowhere-0@1")


def test_messages_get_another_time(admin: Admin) -> None:
    admin.reschedule_delayed(FIRST, deliver_at=1000)
    assert [each.id for each in admin.list_delayed("orders").messages] == [FIRST, SECOND, OTHER]
    before_ms = int(datetime.now(UTC).timestamp() * 1000)
    admin.reschedule_delayed([FIRST, SECOND], delay="1h")
    found = require_all(admin.describe_delayed([FIRST, SECOND]))
    assert all(each[0].due_ms >= before_ms + 3_600_000 for each in found.values())
    assert admin.deliver_delayed_now(OTHER) == {OTHER: [OTHER]}
    with pytest.raises(ValueError, match="either delay or deliver_at"):
        admin.reschedule_delayed(FIRST)
    with pytest.raises(ValueError, match="not the id of a message"):
        admin.cancel_delayed("orders")


def test_what_waits_is_counted(admin: Admin) -> None:
    admin.cancel_delayed("orders-0@4")
    counted = require_all(admin.delayed_stats())
    assert {str(key): each.waiting for key, each in counted.items()} == {
        "orders-0": 1,
        "orders-1": 1,
        "payments-0": 0,
    }
    first = counted[TopicPartition("orders", 0)]
    assert (first.cancelled, first.next_due_ms) == (1, 3000)
    assert counted[TopicPartition("payments", 0)].next_due_ms is None
    assert list(admin.delayed_stats(["payments"])) == [TopicPartition("payments", 0)]


def test_an_error_that_passes_is_waited_for(running: DelayingBroker, admin: Admin) -> None:
    errors = running.delays.at("orders").errors
    loading = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    errors.append(KafkaError(loading))
    assert [each.id for each in admin.list_delayed("orders").messages] == [SECOND, OTHER, FIRST]
    errors.append(KafkaError(loading))
    assert admin.cancel_delayed("orders-0@4") == {SECOND: [SECOND]}
    assert not errors


def test_an_answer_that_was_lost_is_told(running: DelayingBroker, admin: Admin) -> None:
    fake = running.delays.at("orders")
    fake.errors.append(KafkaError(ErrorCode.REQUEST_TIMED_OUT))
    # What came of the first attempt nobody knows.
    del fake.messages[4]
    with pytest.raises(ResourceNotFoundError, match="whose answer was lost, may have been it"):
        admin.cancel_delayed("orders-0@4")


def test_a_cluster_without_delays(admin: Admin, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = PeerSession.choose_version

    def choose_version(
        self: PeerSession[object], message: Message, version: int | None = None
    ) -> int:
        # As of a broker that does not list them.
        if message.API_KEY in DELAY_APIS:
            self.versions.pop(message.API_KEY, None)
        return chosen(self, message, version)

    monkeypatch.setattr(PeerSession, "choose_version", choose_version)
    for ask in (
        lambda: admin.list_delayed("orders"),
        lambda: admin.cancel_delayed("orders-0@4"),
        lambda: require_all(admin.delayed_stats(["orders"])),
    ):
        with pytest.raises(UnsupportedVersionError, match="only brokers of Headwater have"):
            ask()
