"""Which replica a leader sends a consumer to."""

from __future__ import annotations

import pytest

from headwater.cluster.image.image import BrokerInfo
from headwater.replication.leading.read_replica import closest_replica
from headwater.replication.leading.remote_replica import RemoteReplica

#: Broker 1 leads, in rack a.
_BROKERS = {
    1: BrokerInfo(1, (), "a"),
    2: BrokerInfo(2, (), "b"),
    3: BrokerInfo(3, (), "c"),
    4: BrokerInfo(4, (), "c"),
    6: BrokerInfo(6, (), None),
}
_ENDS = {2: 100, 3: 90, 4: 100, 5: 100, 6: 100}


def _choose(rack: str, offset: int = 95, in_sync: tuple[int, ...] = (1, 2, 3, 4, 5, 6)) -> int:
    remotes = {}
    for broker_id, end in _ENDS.items():
        remotes[broker_id] = remote = RemoteReplica(broker_id)
        remote.fetched(end, 10, 1, 100, 0.0)
    chosen = closest_replica(
        rack, offset, leader_id=1, in_sync=in_sync, remotes=remotes, brokers=_BROKERS
    )
    return 1 if chosen is None else chosen


@pytest.mark.parametrize(
    ("rack", "chosen"), [("a", 1), ("b", 2), ("c", 4), ("nowhere", 1), ("None", 1)]
)
def test_it_is_in_the_consumers_rack(rack: str, chosen: int) -> None:
    assert _choose(rack) == chosen


def test_it_has_the_offset_and_is_in_sync() -> None:
    assert _choose("b", 100) == 2
    assert _choose("b", 101) == 1
    assert _choose("b", 10) == 2
    assert _choose("b", 9) == 1
    assert _choose("b", in_sync=(1, 3)) == 1
    assert _choose("c", in_sync=(1, 2, 3), offset=80) == 3


def test_of_several_that_are_equally_far_it_is_the_one_that_caught_up_last() -> None:
    remotes = {}
    for broker_id, now_ms in ((3, 20.0), (4, 10.0)):
        remotes[broker_id] = remote = RemoteReplica(broker_id)
        remote.fetched(50, 0, 1, 50, now_ms)
    chosen = closest_replica(
        "c", 0, leader_id=1, in_sync=(1, 3, 4), remotes=remotes, brokers=_BROKERS
    )
    assert chosen == 3
