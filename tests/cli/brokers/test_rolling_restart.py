"""`headwater brokers rolling-restart`: one broker after the other, and never two at once."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from headwater import AsyncConsumer, AsyncProducer, TopicPartition
from headwater.cli.brokers.operator_command import OperatorCommand, filled_in, names_broker
from headwater.cli.brokers.rolling_restart import (
    RestartOptions,
    RestartStoppedError,
    preview,
    restart_all,
)
from headwater.client.connection.bootstrap import Address
from headwater.client.connection.cluster_connection import ClusterConnection
from headwater.client.connection.cluster_metadata import BrokerNode
from tests.support.async_tests import run_async
from tests.support.brokers.broker_cluster import BrokerCluster, run_cluster_scenario
from tests.support.command import run_command

_ALL = RestartOptions(None, timeout_s=60.0)
_HASTY = RestartOptions(None, timeout_s=1.0)
_NODE = BrokerNode(7, Address("host; rm -rf", 9092))


async def _connected(
    brokers: BrokerCluster, use: Callable[[ClusterConnection], Awaitable[None]]
) -> None:
    async with ClusterConnection(brokers.bootstrap, timeout_s=20.0) as connection:
        await use(connection)


class _Restarts:
    """What an operator's command does, in this process; notes who else was down meanwhile."""

    def __init__(self, brokers: BrokerCluster) -> None:
        self._brokers = brokers
        self.order: list[int] = []

    async def __call__(self, node: BrokerNode) -> None:
        assert len(self._brokers.servers) == len(self._brokers.broker_ids)
        self.order.append(node.broker_id)
        await self._brokers.stop(node.broker_id)
        await self._brokers.start(node.broker_id)


class _Writer:
    """Produces all the time, and counts what was acknowledged."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._bootstrap = bootstrap
        self._topic = topic
        self.acknowledged: list[int] = []

    async def run(self) -> None:
        async with AsyncProducer(bootstrap_servers=self._bootstrap, linger_ms=0) as producer:
            for number in range(1_000_000):
                await (await producer.send(self._topic, b"%d" % number, partition=number % 3))
                self.acknowledged.append(number)


async def _read(bootstrap: str, topic: str, count: int) -> list[int]:
    async with AsyncConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([TopicPartition(topic, number) for number in range(3)])
        found: list[int] = []
        async with asyncio.timeout(30):
            while len(found) < count:
                found += [int(each.value or b"") for each in await consumer.poll(1.0)]
        return sorted(found)


def test_three_brokers_are_restarted_under_load_and_nothing_is_lost(tmp_path: Path) -> None:
    async def scenario(brokers: BrokerCluster) -> None:
        await brokers.create_topic("orders", [[1, 2, 3], [2, 3, 1], [3, 1, 2]])
        await brokers.until_in_sync("orders")
        controller_id, restarts, lines = brokers.controller_id, _Restarts(brokers), list[str]()
        writer = _Writer(brokers.bootstrap, "orders")
        writing = asyncio.ensure_future(writer.run())

        async def use(connection: ClusterConnection) -> None:
            await restart_all(connection, restarts, _ALL, lines.append)

        await _connected(brokers, use)
        before = len(writer.acknowledged)
        await brokers.until(lambda: len(writer.acknowledged) > before or writing.done())
        writing.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await writing
        assert sorted(restarts.order) == [1, 2, 3]
        assert restarts.order[-1] == controller_id
        assert lines[-1] == "Done: 3 brokers restarted, and every replica is in sync."
        # Preferred leaders lead again.
        await brokers.until(
            lambda: [brokers.leader_of("orders", number) for number in range(3)] == [1, 2, 3]
        )
        found = await _read(brokers.bootstrap, "orders", len(writer.acknowledged))
        # One more may have been on its way.
        assert found == list(range(len(found)))
        assert len(found) - len(writer.acknowledged) in (0, 1)

    run_cluster_scenario(tmp_path, scenario, {"auto.leader.rebalance.enable": "false"})


def test_it_ends_at_the_first_trouble(tmp_path: Path) -> None:
    async def scenario(brokers: BrokerCluster) -> None:
        await brokers.create_topic("orders", [[1, 2, 3]])
        await brokers.until_in_sync("orders")
        lines: list[str] = []
        order = [each for each in (1, 2, 3) if each != brokers.controller_id]
        first = order[0]

        async def use(connection: ClusterConnection) -> None:
            async def stopped(
                restart: Callable[[BrokerNode], Awaitable[None]], options: RestartOptions
            ) -> str:
                with pytest.raises(RestartStoppedError) as ended:
                    await restart_all(connection, restart, options, lines.append)
                assert f"ended at broker {first}" in str(ended.value)
                return str(ended.value)

            async def nothing(node: BrokerNode) -> None:
                """A command that says that all is well, and has done nothing."""

            told = await stopped(nothing, _HASTY)
            assert "the end of its old process" in told
            rest = ", ".join(str(each) for each in (1, 2, 3) if each != first)
            assert f"Brokers {rest} were not touched." in told
            told = await stopped(OperatorCommand("exit {id}", lines.append), _HASTY)
            assert f"its command failed with exit code {first}" in told
            assert f"      $ exit {first}" in lines

            async def stop_for_good(node: BrokerNode) -> None:
                await brokers.stop(node.broker_id)

            assert "its return" in await stopped(stop_for_good, _HASTY)
            assert len(brokers.servers) == 2
            # And does not begin while somebody is away.
            controller = RestartOptions([brokers.controller_id], 1.0)
            with pytest.raises(RestartStoppedError, match="short of replicas already"):
                await restart_all(connection, nothing, controller, lines.append)
            [line, reason] = await preview(connection, lambda node: "restart it", controller)
            assert line.endswith("restart it")
            assert "would end here" in reason

        await _connected(brokers, use)

    run_cluster_scenario(tmp_path, scenario)


def test_what_cannot_be_spared_is_said_before(tmp_path: Path) -> None:
    async def scenario(brokers: BrokerCluster) -> None:
        await brokers.create_topic("alone", [[1]])
        await brokers.create_topic("strict", [[2, 3]], {"min.insync.replicas": "2"})
        await brokers.until_in_sync("strict")

        async def use(connection: ClusterConnection) -> None:
            async def shown(*broker_ids: int, may: bool = False) -> str:
                options = RestartOptions(broker_ids, 1.0, may)
                return "\n".join(await preview(connection, lambda _: "go", options))

            assert "would end here: Stopping broker 1" in await shown(1)
            assert "no writes with acks=all (strict-0)" in await shown(2)
            assert "would go on" in await shown(1, may=True)

        await _connected(brokers, use)

    run_cluster_scenario(tmp_path, scenario, {"min.insync.replicas": "1"})


def test_commands_are_filled_in() -> None:
    assert filled_in("ssh {host} restart {id} ${X}", _NODE) == ("ssh 'host; rm -rf' restart 7 ${X}")
    assert names_broker("a {id}")
    assert not names_broker("a ${id")


@run_async
async def test_a_command_that_is_given_up_ends(tmp_path: Path) -> None:
    mark = tmp_path / "done"
    command = OperatorCommand(f"sleep 300; touch {mark}", lambda _: None)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.2):
            await command(_NODE)
    assert not mark.exists()


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        (("--command", "restart it"), "say which with {id} or {host}"),
        (("--command", "go {id}", "--brokers", "1,x"), "should be like 1,2,3"),
        (("--command", "go {id}", "--timeout", "long"), "no length of time"),
    ],
)
def test_a_command_line_that_makes_no_sense(arguments: tuple[str, ...], fault: str) -> None:
    refused = run_command("brokers", "rolling-restart", *arguments, "-b", "127.0.0.1:1")
    assert refused.exit_code == 2
    assert fault in refused.stderr
