"""The notes' two stories of leader epochs: what is lost, and what differs, without them.

Until Kafka 0.11 a replica that came back cut its log at its high watermark. A follower learns of
the high watermark one fetch late, so that cuts too much or too little. Each story is told twice:
with leader epochs, and with a follower that goes by its high watermark as they did then. The second
telling must end badly, or the story would prove nothing.
"""

from __future__ import annotations

from random import Random

import pytest

from headwater.replication.following import plan as follower_plan
from headwater.sim.campaigns.logs import path_of
from headwater.sim.campaigns.replica_set import OPTIONS, Replica, ReplicaSet
from headwater.storage.partition_log import PartitionLog
from headwater.storage.segments.segment_files import LOG
from headwater.storage.truncation import truncate_to

A, B = 0, 1


def _by_high_watermark(log: PartitionLog, now_ms: int) -> None:
    """What became of a log in the beginning, when its broker became a follower."""
    truncate_to(log, log.high_watermark, now_ms)
    log.leader_epochs.clear()  # So that a fetch says nothing of epochs either.


def _power_loss_that_takes_the_end(replica: Replica) -> Random:
    """A loss of power after which nothing is found of what was not synced."""
    path = path_of(0, LOG)
    for seed in range(1_000):
        found = replica.disk.after_power_loss(Random(seed)).contents().get(path, b"")
        if len(found) < replica.log.size_bytes:
            return Random(seed)
    raise AssertionError("whatever happens, the disk keeps it")


@pytest.fixture(params=["leader epochs", "high watermark"])
def is_by_epochs(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    by_epochs: bool = request.param == "leader epochs"
    if not by_epochs:
        monkeypatch.setattr(follower_plan, "begin_following", _by_high_watermark)
    return by_epochs


def test_a_follower_that_restarts_does_not_lose_what_its_leader_acknowledged(
    is_by_epochs: bool,
) -> None:
    # B leads. Both have m1 and m2; A does not know yet that m2 is committed.
    replicas = ReplicaSet([A, B])
    replicas.elect(B, [A, B])
    replicas.produce(b"m1")
    replicas.fetch(A)
    replicas.produce(b"m2")
    replicas.fetch(A)
    request = replicas[A].plan.request(0, OPTIONS)
    assert request is not None
    replicas[B].answer(request)  # B hears that A has m2; its answer does not reach A any more.
    assert (replicas[B].log.high_watermark, replicas[A].log.high_watermark) == (2, 1)

    # A restarts, and B dies before A could fetch again. A is in sync, so A leads.
    replicas[A].stop()
    replicas.tell(A)
    replicas.elect(A, [A], tell=[A])
    assert replicas[A].values() == ([b"m1", b"m2"] if is_by_epochs else [b"m1"])

    # B comes back and follows. With epochs both have what was acknowledged; else nobody has.
    replicas[B].stop()
    replicas.tell(B)
    replicas.settle()
    assert replicas[A].values() == replicas[B].values()
    assert (b"m2" in replicas[B].values()) == is_by_epochs
    if is_by_epochs:
        replicas.produce(b"m3")
        replicas.settle()
        assert replicas[B].values() == [b"m1", b"m2", b"m3"]
        assert [tuple(each) for each in replicas[B].log.leader_epochs.entries] == [(0, 0), (1, 2)]


def test_two_replicas_that_fail_together_do_not_differ_afterwards(is_by_epochs: bool) -> None:
    # A leads and has m1 and m2, B has m1. A believes that m2 is committed: B's log had it once.
    replicas = ReplicaSet([A, B])
    replicas.elect(A, [A, B])
    replicas.produce(b"m1")
    replicas.fetch(B)
    replicas[B].log.flush()
    replicas.produce(b"m2")
    replicas.fetch(B)
    replicas.fetch(B)
    assert replicas[A].log.high_watermark == 2

    # Both lose power at once. A has synced m2, B has not; B comes back first and leads.
    replicas[A].log.flush()
    replicas[A].lose_power(Random(0))
    replicas[B].lose_power(_power_loss_that_takes_the_end(replicas[B]))
    assert replicas[B].values() == [b"m1"]
    replicas.elect(B, [B], tell=[B])
    replicas.produce(b"m3")
    assert (replicas[B].log.log_end_offset, replicas[B].log.high_watermark) == (2, 2)

    # A comes back and follows B. Its high watermark, 2, is where its log and B's end.
    replicas.tell(A)
    replicas.settle()
    if is_by_epochs:
        assert replicas[A].values() == replicas[B].values() == [b"m1", b"m3"]
        assert replicas[A].log.leader_epochs.entries == replicas[B].log.leader_epochs.entries
        assert (replicas[A].log.high_watermark, replicas[A].log.log_end_offset) == (2, 2)
    else:
        assert replicas[A].values() == [b"m1", b"m2"]
        assert replicas[B].values() == [b"m1", b"m3"]
