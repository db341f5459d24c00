from collections.abc import Iterator

import pytest

from tests.support.brokers.clusters import KINDS, Cluster, running_cluster
from tests.support.command import Finished, run_command
from tests.support.group_tables import Command
from tests.support.waiting import eventually


@pytest.fixture(scope="module", params=KINDS)
def cluster(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    """A cluster to use the real thing on."""
    yield from running_cluster(request.param, tmp_path_factory.mktemp("cluster"))


@pytest.fixture
def groups(cluster: Cluster) -> Command:
    """`headwater groups` on the cluster."""

    def run(*arguments: object) -> Finished:
        return run_command("groups", *arguments, "--bootstrap-server", cluster.bootstrap)

    return run


@pytest.fixture
def topic(cluster: Cluster) -> str:
    """Three partitions with none, one and two records."""
    name = cluster.new_name()
    where = ("-b", cluster.bootstrap)
    assert run_command("topics", "create", name, "-p", 3, *where).exit_code == 0
    eventually(lambda: run_command("get-offsets", name, *where).exit_code == 0)
    for partition in range(3):
        written = run_command(
            "produce", name, "--partition", partition, *where, input=b"x\n" * partition
        )
        assert written.exit_code == 0
    return name


@pytest.fixture
def group(cluster: Cluster, groups: Command, topic: str) -> str:
    """A group without members that is at offset 1 of partitions 1 and 2."""
    name = cluster.new_name("group")
    made = groups("reset-offsets", name, "--topic", f"{topic}:1,2", "--to-offset", 1, "--execute")
    assert (made.exit_code, made.stderr) == (0, "")
    return name
