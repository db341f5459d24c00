"""`headwater audit watch` on a broker that publishes every second."""

import asyncio
import contextlib
import json
from collections.abc import Iterator

import pytest

from headwater.cli.audit.watch.rules import parse_rule
from headwater.cli.audit.watch.watcher import Watcher, WatchOptions
from headwater.client.connection.cluster_connection import ClusterConnection
from headwater.testing import broker
from headwater.testing.running_broker import RunningBroker
from tests.support.async_tests import run_async
from tests.support.command import Finished, run_command
from tests.support.waiting import eventually


@pytest.fixture(scope="module")
def audited() -> Iterator[RunningBroker]:
    settings = {"audit.bucket.ms": "1000", "offsets.topic.num.partitions": "1"}
    with broker(settings=settings) as running:
        yield running


def commit(running: RunningBroker, topic: str, offset: int) -> None:
    reset = ("groups", "reset-offsets", "billing", "--topic", topic, "--to-offset", offset)
    assert run_command(*reset, "--execute", "-b", running.bootstrap).exit_code == 0


def write(running: RunningBroker, topic: str, count: int) -> None:
    written = run_command("produce", topic, "-b", running.bootstrap, input=b"x\n" * count)
    assert written.exit_code == 0


def look(running: RunningBroker, *arguments: object) -> Finished:
    return run_command("audit", "watch", *arguments, "--once", "-b", running.bootstrap)


def test_a_rule_that_fires_is_told_and_written_down(audited: RunningBroker) -> None:
    audited.create_topic("orders")
    quiet = look(audited, "orders")
    assert (quiet.exit_code, quiet.stdout, quiet.stderr) == (0, "", "")
    write(audited, "orders", 10)
    commit(audited, "orders", 4)
    behind = ("orders", "--rule", "behind > 5", "--buffer", "0s")
    firing: list[Finished] = []

    def fires() -> bool:
        firing.append(look(audited, *behind))
        return firing[-1].exit_code == 3

    eventually(fires)
    [line] = firing[-1].lines
    assert line.endswith("BEGINS  behind is 6 for orders, group billing (rule behind > 5: above 5)")
    assert look(audited, *behind[:3], "--buffer", "1h").exit_code == 0, "it came just now"
    # Those who delete what was not read lose it.
    where = ("orders", "--partition", 0, "--offset", 7)
    deleted = run_command("delete-records", *where, "-b", audited.bootstrap)
    assert deleted.exit_code == 0, deleted.stderr
    missing = look(audited, "--json", "--to-topic", "audit-alarms")
    assert missing.exit_code == 3
    event = json.loads(missing.stdout)
    assert (event["event"], event["figure"], event["value"]) == ("begin", "missing", 3)
    read = run_command(
        *("consume", "audit-alarms", "--from-beginning", "--max-messages", 1),
        *("-b", audited.bootstrap),
    )
    assert json.loads(read.lines[0]) == event


def test_an_alarm_ends_and_the_page_shows_it(
    audited: RunningBroker, capsys: pytest.CaptureFixture[str]
) -> None:
    audited.create_topic("payments")
    write(audited, "payments", 10)
    commit(audited, "payments", 4)
    rules = {"slow": parse_rule("behind > 5", "slow")}
    options = WatchOptions(
        ["payments"], rules, 0.05, 3_600_000, 0, None, ("127.0.0.1", 0), False, False
    )

    @run_async
    async def scenario() -> None:
        async with ClusterConnection(audited.bootstrap) as connection:
            watcher = Watcher(connection, audited.bootstrap, options)
            watching = asyncio.ensure_future(watcher.run())
            async with asyncio.timeout(30):
                while not watcher.board.since_ms:
                    await asyncio.sleep(0.01)
                assert (
                    'headwater_audit_watch_firing{rule="slow",topic="payments",group="billing"} 1'
                    in ("".join(watcher.metric_pieces()))
                )
                await asyncio.to_thread(commit, audited, "payments", 10)
                while watcher.board.since_ms:
                    await asyncio.sleep(0.01)
            watching.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await watching

    scenario()
    begins, ends = capsys.readouterr().out.splitlines()[-2:]
    assert "BEGINS  behind is 6" in begins
    assert "ENDS    behind is 0" in ends


def test_a_round_that_fails_changes_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    @run_async
    async def scenario() -> None:
        with broker(settings={"audit.bucket.ms": "1000"}) as running:
            options = WatchOptions([], {}, 0.01, 1_000, 0, None, None, False, False)
            async with ClusterConnection(running.bootstrap, timeout_s=0.2) as connection:
                watcher = Watcher(connection, running.bootstrap, options)
                watching = asyncio.ensure_future(watcher.run())
                async with asyncio.timeout(30):
                    while not watcher.round_count:
                        await asyncio.sleep(0.01)
                    await asyncio.to_thread(running.close)
                    while watcher.failed_count < 2:
                        await asyncio.sleep(0.01)
                watching.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await watching

    scenario()
    assert "headwater: " in capsys.readouterr().err


@pytest.mark.parametrize(
    "wrong",
    [
        ("--rule", "lots"),
        ("--rules", "/no/such/file"),
        ("--every", "0"),
        ("--buffer", "soon"),
        ("--metrics-listen", "here"),
    ],
)
def test_options_that_make_no_sense_are_told(wrong: tuple[str, str]) -> None:
    told = run_command("audit", "watch", *wrong, "-b", "127.0.0.1:1")
    assert told.exit_code == 2
    assert "Traceback" not in told.stderr
