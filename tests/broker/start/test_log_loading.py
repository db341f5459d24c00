"""What the log tells of a broker's start and end, and of the logs that it opens."""

import asyncio
import logging
import re
from pathlib import Path

import pytest

from headwater.base.clocks import ManualClock
from headwater.broker.server import BrokerServer
from headwater.broker.settings.static_settings import static_of
from headwater.broker.start.log_loading import load_logs
from headwater.sim.campaigns.broker_logs import append, open_directories, orders, run_inline
from headwater.sim.campaigns.logs import NOW_MS
from headwater.sim.disk.faulty_disk import FaultyDisk
from headwater.storage.directories.log_directories import LogDirectories
from headwater.storage.directories.log_directory import LoadProgress
from tests.support.brokers.running_broker import broker_settings


def lines_of(caplog: pytest.LogCaptureFixture, *names: str) -> list[str]:
    """What these parts have said since somebody asked."""
    lines = [
        re.sub(r"\d+ ms", "N ms", record.getMessage())
        for record in caplog.records
        if record.name in names
    ]
    caplog.clear()
    return lines


def test_a_start_and_an_end(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    parts = [f"headwater.{each}" for each in ("broker.server", "broker.start.log_loading")]
    members = ("headwater.cluster.member", "headwater.cluster.controller.controller")

    async def run() -> None:
        server = BrokerServer(static_of(broker_settings(tmp_path)))
        await server.start()
        lines = lines_of(caplog, *parts, *members)
        begin, loaded, *joined, ready = lines
        place = f"PLAINTEXT://{server.addresses[0]}"
        assert re.fullmatch(
            rf"Broker 0 of cluster \S+ starts, with Headwater \S+, at {place}\.", begin
        )
        assert loaded == f"{tmp_path}: 0 logs opened, in N ms."
        assert joined == [
            f"Broker 0 is registered, with epoch {server.context.member.broker.broker_epoch}.",
            "The controller of epoch 1 has loaded 1 broker and 0 topics in N ms.",
            "Broker 0 is the controller, epoch 1.",
        ]
        assert ready == "Broker 0 is ready, with 0 partitions, after N ms."
        await server.stop()
        assert lines_of(caplog, *parts, *members) == [
            "The broker stops.",
            "Broker 0 is not the controller any more.",
            "The broker has stopped, in N ms.",
        ]

    asyncio.run(run())


def test_recovery_is_told_as_it_goes_and_with_what_it_took(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    clock = ManualClock()
    done: list[int] = []

    def pass_time(progress: LoadProgress) -> None:
        done.append(progress.done)
        clock.advance(4_000)

    def load(disk: FaultyDisk) -> LogDirectories:
        directories = open_directories(disk, ["/data"], load=False)
        caplog.clear()
        asyncio.run(load_logs(directories, clock, run_inline, pass_time))
        return directories

    disk = FaultyDisk(directories=["/data"])
    directories = open_directories(disk, ["/data"])
    for number in range(6):
        append(directories.create(orders(number), None, NOW_MS), b"value")
    size_bytes = sum(each.segments.active.size_bytes for each in directories)
    disk = disk.after_process_end()
    directories = load(disk)
    assert done == list(range(6))
    assert lines_of(caplog, "headwater.broker.start.log_loading") == [
        "3 of 6 logs are open after 12 s. The next one is orders-3.",
        f"/data: 6 logs opened, 6 recovered from {size_bytes} bytes, after an unclean stop, "
        "in N ms.",
    ]
    directories.shutdown(1)
    load(disk)
    assert lines_of(caplog, "headwater.broker.start.log_loading")[-1] == (
        "/data: 6 logs opened, in N ms."
    )
