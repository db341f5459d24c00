"""`headwater brokers drain` waits for brokers that are away, and says so."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from headwater.base.errors import ErrorCode, KafkaError
from headwater.cli.brokers.waiting import Waiting
from tests.support.brokers.broker_cluster import BrokerCluster, run_cluster_scenario
from tests.support.command import run_command


def test_who_is_away_for_a_restart_is_waited_for(tmp_path: Path) -> None:
    async def scenario(cluster: BrokerCluster) -> None:
        await cluster.create_topic("orders", [[1, 2]] * 2)
        await cluster.create_topic("others", [[1, 3]])
        # Only broker 3 can take what broker 2 has.
        await cluster.stop(3)
        options = ("--yes", "--watch-seconds", 0, "-b", cluster.bootstrap)
        draining = asyncio.to_thread(run_command, "brokers", "drain", 2, *options)
        drain = asyncio.create_task(draining)
        done, _ = await asyncio.wait([drain], timeout=2.0)
        assert not done, drain.result()
        await cluster.start(3)
        finished = await drain
        assert finished.exit_code == 0, finished.stderr
        assert "Waiting for broker 3, which is not there." in finished.stderr
        assert finished.lines[-1].endswith("may be stopped for good.")
        partitions = cluster.image.topics["orders"].partitions
        assert {frozenset(each.replicas) for each in partitions} == {frozenset((1, 3))}

    run_cluster_scenario(tmp_path / "cluster", scenario)


def test_what_passes_is_tried_again_and_told_once(capsys: pytest.CaptureFixture[str]) -> None:
    answers: list[KafkaError | int] = [
        KafkaError(ErrorCode.NOT_CONTROLLER, "There is no controller."),
        KafkaError(ErrorCode.NOT_CONTROLLER, "There is no controller."),
        7,
    ]

    async def attempt() -> int:
        answer = answers.pop(0)
        if isinstance(answer, KafkaError):
            raise answer
        return answer

    waiting = Waiting()
    assert asyncio.run(waiting.through(attempt)) == 7
    told = "Waiting for the cluster: There is no controller.\n"
    assert capsys.readouterr().err == told
    answers.append(KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "No."))
    with pytest.raises(KafkaError, match=r"No\."):
        asyncio.run(waiting.through(attempt))
