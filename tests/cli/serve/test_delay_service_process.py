"""The delay service beside a broker: started, started again, and stopped."""

import asyncio
import sys
from collections.abc import Callable

import pytest

from headwater.base.settings import SettingError, SettingValues
from headwater.broker.settings.configuration import Configuration
from headwater.cli.serve.delay_service_process import (
    DelayServiceProcess,
    delay_service_command,
    wants_delay_service,
)


def settings_of(**given: str) -> SettingValues:
    configuration = Configuration()
    configuration.read_assignments([f"{name}={value}" for name, value in given.items()])
    return configuration.values


def test_none_runs_unless_it_is_switched_on() -> None:
    assert not wants_delay_service(settings_of())
    assert wants_delay_service(settings_of(**{"delay.service.enable": "true"}))


def test_levels_that_cannot_be_are_refused_before_the_broker_starts() -> None:
    wrong = {"delay.service.enable": "true", "delay.service.levels": "1m,5s"}
    with pytest.raises(SettingError, match=r"delay\.service\.levels is wrong: .* do not rise"):
        wants_delay_service(settings_of(**wrong))


def test_the_command_names_the_broker_and_the_levels() -> None:
    settings = settings_of(**{"delay.service.levels": "1s,1m"})
    command = delay_service_command(settings, "127.0.0.1:9092", 3)
    assert command[1:4] == ["-m", "headwater", "delay-service"]
    assert " ".join(command[4:]) == (
        "--bootstrap-server 127.0.0.1:9092 --instance broker-3 --levels 1s,1m --stop-with-stdin"
    )


async def _until(is_so: Callable[[], object]) -> None:
    async with asyncio.timeout(30):
        while not is_so():
            await asyncio.sleep(0.01)


def test_it_is_started_again_when_it_ends(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")

    async def scene() -> None:
        code = "print('hello'); raise SystemExit(3)"
        process = DelayServiceProcess([sys.executable, "-c", code], pause_s=0.001)
        process.start()
        await _until(lambda: process.start_count >= 3)
        await process.stop()

    asyncio.run(scene())
    assert "delay service: hello" in caplog.messages
    assert "The delay service has ended with exit code 3." in caplog.messages


def test_it_is_ended_with_the_broker(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")

    async def scene() -> None:
        code = (
            "import signal, sys\n"
            "signal.signal(signal.SIGTERM, lambda *_: sys.exit(print('bye')))\n"
            "print('here', flush=True)\n"
            "sys.stdin.read()\n"
        )
        process = DelayServiceProcess([sys.executable, "-c", code])
        process.start()
        await _until(lambda: "delay service: here" in caplog.messages)
        await process.stop()
        assert process.start_count == 1

    asyncio.run(scene())
    assert caplog.messages[-1] == "delay service: bye"


def test_a_program_that_is_not_there_is_told(caplog: pytest.LogCaptureFixture) -> None:
    async def scene() -> None:
        process = DelayServiceProcess(["/nowhere/at-all"], pause_s=0.001)
        process.start()
        await _until(lambda: caplog.messages)
        await process.stop()

    asyncio.run(scene())
    assert "The delay service cannot be started: No such file or directory." in caplog.messages
