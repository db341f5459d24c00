"""Clusters of three broker processes, Headwater's always and Apache's in the full tier."""

from __future__ import annotations

import gc
import itertools
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.brokers.headwater_cluster import HeadwaterCluster
from tests.support.brokers.three_brokers import ThreeBrokers
from tests.support.brokers.zookeeper import fresh_chroot, shared_zookeeper, zookeeper_ensemble
from tests.support.kafka.cluster import KafkaCluster
from tests.support.tiers import full_tier
from tests.support.traffic.traffic import PARTITION_COUNT

_numbers = itertools.count(1)

HEADWATER = "headwater"
KAFKA = "kafka"
#: Headwater's, with two log directories for each broker.
HEADWATER_DISKS = "headwater, two disks"
KINDS = [HEADWATER, pytest.param(KAFKA, marks=[pytest.mark.full, pytest.mark.kafka])]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # kafka-python reads its schemas in a way that Python has meanwhile named a newer one for.
    # Its sockets it leaves to the garbage collector, which meets them in the midst of other tests.
    ignored = pytest.mark.filterwarnings(
        "ignore:(read|open)_text is deprecated:DeprecationWarning",
        "ignore:unclosed <socket:ResourceWarning",
    )
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(ignored)


@pytest.fixture(scope="module")
def cluster_of_kind(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Callable[[str], ThreeBrokers]]:
    """The cluster of a kind, started by the first test of a module that asks for it."""
    started: dict[str, ThreeBrokers] = {}
    with ExitStack() as stack:

        def start(kind: str) -> ThreeBrokers:
            directory = tmp_path_factory.mktemp("cluster")
            if kind == KAFKA:
                return stack.enter_context(KafkaCluster(directory))
            if full_tier():
                ensemble = stack.enter_context(zookeeper_ensemble(directory / "zookeeper"))
                address = ensemble.address
            else:
                address = shared_zookeeper().address
            return stack.enter_context(
                HeadwaterCluster(
                    directory, address + fresh_chroot(), second_disks=kind == HEADWATER_DISKS
                )
            )

        def of_kind(kind: str) -> ThreeBrokers:
            if kind not in started:
                started[kind] = start(kind)
            return started[kind]

        yield of_kind


@pytest.fixture(params=KINDS)
def running(
    request: pytest.FixtureRequest, cluster_of_kind: Callable[[str], ThreeBrokers]
) -> ThreeBrokers:
    return cluster_of_kind(request.param)


@pytest.fixture
def cluster(running: ThreeBrokers) -> Iterator[ThreeBrokers]:
    """All three brokers run when a test begins."""
    running.heal()
    yield running
    # What clients left open is found while nobody minds, see above.
    gc.collect()


@pytest.fixture
def new_topic(cluster: ThreeBrokers) -> Iterator[Callable[..., str]]:
    """Makes topics, which are gone after the test: a broker that was killed looks at every log."""
    created: list[str] = []

    def create(**configs: str) -> str:
        named = {name.replace("_", "."): value for name, value in configs.items()}
        created.append(cluster.create_topic(f"topic-{next(_numbers)}", PARTITION_COUNT, named))
        return created[-1]

    yield create
    cluster.heal()
    cluster.delete_topics(created)
