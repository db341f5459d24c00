"""One harm after the other, as chance has it, under the traffic of all clients at once.

The seed is printed first and says which harms come, to whom and when; how they meet with what the
cluster does at that moment is different every time.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from headwater.zookeeper.ensemble import ZooKeeperEnsemble
from tests.support.brokers.headwater_cluster import HeadwaterCluster
from tests.support.brokers.three_brokers import BROKER_IDS
from tests.support.brokers.zookeeper import fresh_chroot, zookeeper_ensemble
from tests.support.traffic.traffic import CLIENTS, VERIFIABLE, Traffic

pytestmark = pytest.mark.full

HARM_COUNT = 8
PAUSE_S_MAX = 6.0


@pytest.fixture(scope="module")
def ensemble(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperEnsemble]:
    with zookeeper_ensemble(tmp_path_factory.mktemp("zookeeper")) as ensemble:
        yield ensemble


@pytest.fixture(scope="module")
def running(
    ensemble: ZooKeeperEnsemble, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[HeadwaterCluster]:
    directory = tmp_path_factory.mktemp("cluster")
    with HeadwaterCluster(directory, ensemble.address + fresh_chroot()) as cluster:
        yield cluster


class Storm:
    """Does harm to a cluster, and undoes it."""

    def __init__(
        self, cluster: HeadwaterCluster, ensemble: ZooKeeperEnsemble, chance: random.Random
    ) -> None:
        self._cluster = cluster
        self._ensemble = ensemble
        self._chance = chance
        self._harms: list[Callable[[], None]] = [
            self._kill_some,
            self._stop_one,
            self._pause_one,
            self._kill_member,
        ]

    def strike(self) -> None:
        harm = self._chance.choice(self._harms)
        print(f"{time.strftime('%H:%M:%S')} {harm.__name__.strip('_')}", flush=True)
        harm()

    def _wait(self) -> None:
        time.sleep(self._chance.uniform(0, PAUSE_S_MAX))

    def _kill_some(self) -> None:
        killed = self._chance.sample(BROKER_IDS, self._chance.choice([1, 1, 2, 3]))
        for broker_id in killed:
            self._cluster.brokers[broker_id].kill()
        self._wait()
        for broker_id in killed:
            self._cluster.brokers[broker_id].start()

    def _stop_one(self) -> None:
        broker = self._cluster.brokers[self._chance.choice(BROKER_IDS)]
        assert broker.stop() == 0
        self._wait()
        broker.start()

    def _pause_one(self) -> None:
        with self._cluster.paused(self._cluster.brokers[self._chance.choice(BROKER_IDS)]):
            self._wait()

    def _kill_member(self) -> None:
        member = self._chance.choice(self._ensemble.servers)
        member.kill()
        self._wait()
        member.start()


def test_a_storm(
    cluster: HeadwaterCluster,
    ensemble: ZooKeeperEnsemble,
    new_topic: Callable[..., str],
    tmp_path: Path,
) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    storm = Storm(cluster, ensemble, chance)
    with ExitStack() as stack:
        traffics = []
        for client in (each for each in CLIENTS if each != VERIFIABLE):
            directory = tmp_path / client
            directory.mkdir()
            traffics.append(stack.enter_context(Traffic(cluster, new_topic(), client, directory)))
        for _ in range(HARM_COUNT):
            storm.strike()
            time.sleep(chance.uniform(0, PAUSE_S_MAX))
        cluster.heal()
        for traffic in traffics:
            traffic.wait_for_progress()
        for traffic in traffics:
            traffic.finish()
