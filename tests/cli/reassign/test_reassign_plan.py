"""`headwater reassign plan`: shown, written, and carried out by `execute`."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from headwater.base.ids import TopicPartition
from headwater.cli.reassign.moves_file import moves_text, read_moves
from tests.support.brokers.broker_cluster import BrokerCluster, run_cluster_scenario
from tests.support.command import Finished, run_command


def test_a_plan_is_a_file_that_is_carried_out(tmp_path: Path) -> None:
    path = tmp_path / "moves.json"

    async def scenario(cluster: BrokerCluster) -> None:
        async def reassign(*arguments: object) -> Finished:
            where = (*arguments, "-b", cluster.bootstrap)
            return await asyncio.to_thread(run_command, "reassign", *where)

        await cluster.create_topic("orders", [[1, 2]] * 6)
        shown = await reassign("plan", "--watch-seconds", 0)
        assert (shown.exit_code, shown.stderr) == (0, "")
        assert "replicas are copied" in shown.stdout
        planned = await reassign("plan", "--watch-seconds", 0, "--out", path)
        assert f"--reassignment-json-file {path}" in planned.lines[-1]
        assert all(replicas == (1, 2) for replicas in _replicas(cluster))
        moves = read_moves(str(path))
        done = await reassign("execute", "--reassignment-json-file", path)
        assert done.exit_code == 0, done.stdout
        await cluster.until(
            lambda: all(
                cluster.partition(*key).replicas == tuple(moves[key])
                and not cluster.partition(*key).is_moving
                for key in moves
            )
        )
        assert sum(3 in replicas for replicas in _replicas(cluster)) == 4
        # What is even needs no file.
        path.unlink()
        nothing = await reassign("plan", "--watch-seconds", 0, "--out", path)
        assert nothing.exit_code == 0
        assert not path.exists()

    run_cluster_scenario(tmp_path / "cluster", scenario)


def _replicas(cluster: BrokerCluster) -> list[tuple[int, ...]]:
    return [each.replicas for each in cluster.image.topics["orders"].partitions]


def test_the_file_is_the_one_of_kafka(tmp_path: Path) -> None:
    moves = {TopicPartition("b", 1): (2, 3), TopicPartition('a"', 0): (1,)}
    path = tmp_path / "moves.json"
    path.write_text(moves_text(moves))
    assert read_moves(str(path)) == {key: list(replicas) for key, replicas in moves.items()}
    assert json.loads(path.read_text())["version"] == 1
