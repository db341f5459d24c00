"""`headwater brokers rolling-restart` on processes that are written to, Apache Kafka's too."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from headwater import Producer
from tests.support.brokers.three_brokers import BROKER_IDS, ThreeBrokers
from tests.support.command import run_command
from tests.support.other_clients.users import read_all
from tests.support.traffic.steady_writer import SteadyWriter
from tests.support.traffic.traffic import PARTITION_COUNT

pytestmark = pytest.mark.full

_LOOK_S = 0.05
#: What an operator's command does: says which broker, and waits until it is done.
_COMMAND = (
    "touch {directory}/{{id}}.wanted; until [ -e {directory}/{{id}}.done ]; do sleep 0.1; done"
)


@contextmanager
def _machines(cluster: ThreeBrokers, directory: Path) -> Iterator[list[int]]:
    """Restarts brokers as the command asks for it, from a thread; tells in which order."""
    order: list[int] = []
    is_over = threading.Event()

    def serve() -> None:
        while not is_over.wait(_LOOK_S):
            for broker_id in BROKER_IDS:
                wanted = directory / f"{broker_id}.wanted"
                if wanted.exists():
                    wanted.unlink()
                    order.append(broker_id)
                    cluster.nodes[broker_id].stop()
                    cluster.nodes[broker_id].start()
                    (directory / f"{broker_id}.done").touch()

    thread = threading.Thread(target=serve, name="machines")
    thread.start()
    try:
        yield order
    finally:
        is_over.set()
        thread.join()


def test_three_processes_are_restarted_and_nothing_is_lost(
    cluster: ThreeBrokers, new_topic: Callable[..., str], tmp_path: Path
) -> None:
    topic = new_topic()
    cluster.wait_settled(topic, PARTITION_COUNT)
    command = _COMMAND.format(directory=tmp_path)
    with (
        _machines(cluster, tmp_path) as order,
        Producer(bootstrap_servers=cluster.bootstrap) as producer,
        SteadyWriter(producer, topic, PARTITION_COUNT) as writer,
    ):
        writer.wait_for_more()
        done = run_command(
            *("brokers", "rolling-restart", "--command", command, "--timeout", "2m"),
            *("-b", cluster.bootstrap),
        )
        assert (done.exit_code, done.stderr) == (0, ""), done.stdout
        writer.wait_for_more()
    assert sorted(order) == list(BROKER_IDS)
    assert done.lines[-1] == "Done: 3 brokers restarted, and every replica is in sync."
    writer.check(read_all(cluster.bootstrap, topic, PARTITION_COUNT))
    status = run_command("cluster", "status", "-b", cluster.bootstrap)
    assert status.exit_code == 0, status.stdout
