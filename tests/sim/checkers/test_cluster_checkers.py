import pytest

from headwater.base.ids import TopicPartition
from headwater.sim.checkers.differing_replicas import ReplicaLog, check_replicas_agree
from headwater.sim.checkers.high_watermark import CommittedEnds
from headwater.sim.checkers.two_leaders import LeadersByEpoch
from headwater.sim.checkers.unseen_after_healing import check_everything_seen
from headwater.sim.histories.history import History, PropertyViolated, Sent, Stored
from headwater.wire.records import Record, encode_batch

ORDERS = TopicPartition("orders", 0)
OTHER = TopicPartition("orders", 1)


# -- two leaders -----------------------------------------------------------------------------------


def test_leaders_of_different_epochs_and_partitions_may_differ() -> None:
    leaders = LeadersByEpoch()
    for partition, epoch, leader in [(ORDERS, 1, 0), (ORDERS, 2, 1), (OTHER, 1, 2), (ORDERS, 1, 0)]:
        leaders.observe(partition, epoch, leader)
    leaders.decide(ORDERS, 3, -1)
    assert leaders.count == 3


def test_two_leaders_in_one_epoch_are_found() -> None:
    leaders = LeadersByEpoch()
    leaders.observe(ORDERS, 4, 0)
    with pytest.raises(PropertyViolated, match="an epoch has one leader"):
        leaders.observe(ORDERS, 4, 1)


def test_an_epoch_that_is_decided_again_for_another_is_found() -> None:
    leaders = LeadersByEpoch()
    leaders.decide(ORDERS, 4, 0)
    leaders.decide(ORDERS, 4, 0)
    with pytest.raises(PropertyViolated, match="an epoch has one leader"):
        leaders.decide(ORDERS, 4, 1)


def test_a_decided_epoch_that_goes_back_is_found() -> None:
    leaders = LeadersByEpoch()
    leaders.decide(ORDERS, 4, 0)
    with pytest.raises(PropertyViolated, match="leader epochs only grow"):
        leaders.decide(ORDERS, 3, 0)


# -- the high watermark ----------------------------------------------------------------------------


def committed_to_ten() -> CommittedEnds:
    history = History()
    values = [history.send(Sent("p", number, ORDERS, True)) for number in range(8)]
    history.acknowledge(ORDERS, 0, values)
    ends = CommittedEnds(history)
    ends.observe(ORDERS, 2, 10, 12)
    return ends


def test_a_new_leader_may_know_an_older_high_watermark() -> None:
    ends = committed_to_ten()
    ends.observe(ORDERS, 3, 9, 11)
    ends.observe(ORDERS, 3, 11, 11)
    ends.observe(ORDERS, 2, 10, 12)  # The old leader has not heard of it.


def test_a_high_watermark_that_goes_back_in_an_epoch_is_found() -> None:
    with pytest.raises(PropertyViolated, match="epoch 2, it was 10 and is 9"):
        committed_to_ten().observe(ORDERS, 2, 9, 12)


def test_a_leader_whose_log_ends_before_what_was_committed_is_found() -> None:
    with pytest.raises(PropertyViolated, match="committed up to 10"):
        committed_to_ten().observe(ORDERS, 3, 9, 9)


def test_a_lone_replica_may_lose_what_was_not_acknowledged() -> None:
    ends = committed_to_ten()
    ends.lone_replica_lost(ORDERS)
    ends.observe(ORDERS, 3, 8, 8)
    ends.lone_replica_lost(ORDERS)
    with pytest.raises(PropertyViolated, match="committed up to 8"):
        ends.observe(ORDERS, 4, 7, 7)


# -- replicas that differ --------------------------------------------------------------------------


def segment(*values: bytes, first: int = 0) -> bytes:
    batches = b""
    for offset, value in enumerate(values, first):
        batch = bytearray(encode_batch([Record(0, 1, None, value)]))
        batch[:8] = offset.to_bytes(8, "big")
        batches += bytes(batch)
    return batches


@pytest.mark.parametrize(
    "log",
    [
        ReplicaLog(3, (segment(b"a", b"b", b"c"),)),
        ReplicaLog(3, (segment(b"a"), segment(b"b", b"c", b"e", first=1))),
        ReplicaLog(2, (segment(b"a", b"b", b"x"),)),
        ReplicaLog(3, (segment(b"b", b"c", first=1),)),
        ReplicaLog(3, (segment(b"a", b"b", b"c") + segment(b"d")[:-1],)),
    ],
)
def test_logs_that_agree_below_both_high_watermarks_pass(log: ReplicaLog) -> None:
    leader = ReplicaLog(4, (segment(b"a", b"b", b"c", b"d"),))
    check_replicas_agree(ORDERS, {0: leader, 1: log, 2: leader})


@pytest.mark.parametrize(
    "log",
    [
        ReplicaLog(3, (segment(b"a", b"x", b"c"),)),
        ReplicaLog(3, (segment(b"a", b"b"),)),
        ReplicaLog(3, (segment(b"a", b"b"), segment(b"d", first=3))),
        ReplicaLog(3, (segment(b"a"), segment(b"c", first=2))),
    ],
)
def test_logs_that_differ_or_have_gaps_are_found(log: ReplicaLog) -> None:
    leader = ReplicaLog(4, (segment(b"a", b"b", b"c", b"d"),))
    with pytest.raises(PropertyViolated, match="replicas do not differ"):
        check_replicas_agree(ORDERS, {0: leader, 2: log})


# -- unseen after healing --------------------------------------------------------------------------


def stored(*values: bytes) -> list[Stored]:
    return [Stored(offset, value) for offset, value in enumerate(values)]


def test_a_reader_that_saw_everything_passes() -> None:
    check_everything_seen("r", {ORDERS: stored(b"a", b"b")}, {ORDERS: stored(b"a", b"b")})


@pytest.mark.parametrize(
    ("seen", "broken"),
    [
        (stored(b"a"), "stays unseen"),
        (stored(b"a", b"x"), "what was read stays"),
        (stored(b"a", b"b", b"c"), "which is gone"),
    ],
)
def test_a_reader_that_saw_less_or_something_else_is_found(seen: list[Stored], broken: str) -> None:
    with pytest.raises(PropertyViolated, match=broken):
        check_everything_seen("r", {ORDERS: seen}, {ORDERS: stored(b"a", b"b")})
