"""ZooKeeper's servers as one command: checked, started, announced, and stopped by a signal.

Standard output says what happens, and in one line that scripts can wait for that all servers serve.
The first SIGTERM or SIGINT ends the servers in order, a second one at once.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Final

from headwater.base.counted import counted
from headwater.java.installation import ProgramUnavailableError
from headwater.zookeeper.ensemble import ZooKeeperEnsemble, free_ports, is_free
from headwater.zookeeper.release import resolve_zookeeper
from headwater.zookeeper.server import HOST, ZooKeeperError

_WATCH_INTERVAL_S: Final = 0.2
_LOCK_FILE: Final = ".lock"


class _StopWanted(BaseException):
    """A signal asked for the end."""


class _CannotRunError(Exception):
    """The message is a sentence for the person at the keyboard."""


def run_zookeeper(data_dir: str, port: int, server_count: int) -> int:
    """Serve until a signal comes; returns the exit code."""
    directory = Path(data_dir).absolute()
    try:
        with _stopped_by_signals(), _directory_in_use(directory, server_count):
            _serve(directory, port, server_count)
    except _StopWanted:
        return 0
    except (_CannotRunError, ProgramUnavailableError, ZooKeeperError) as failure:
        print(f"headwater: {failure}", file=sys.stderr)
        return 1
    return 0


def _serve(directory: Path, port: int, server_count: int) -> None:
    began_s = time.monotonic()
    ports = list(range(port, port + server_count)) if port else free_ports(server_count)
    for each in ports:
        if each > 65_535 or not is_free(HOST, each):
            raise _CannotRunError(
                f"The port {each} of {HOST} is in use or not allowed; --port takes another."
            )
    program = resolve_zookeeper(lambda line: _say(f"  program     {line}"))
    _say(f"  data        {directory}")
    _say(f"  starting    {counted(server_count, 'server')}")
    ensemble = ZooKeeperEnsemble(directory, ports=ports, program=program)
    try:
        ensemble.start()
        _say(
            f"ZooKeeper is ready at {ensemble.address} "
            f"(started in {time.monotonic() - began_s:.1f} s)"
        )
        _watch(ensemble)
    except _StopWanted:
        _say("ZooKeeper is stopping.")
        ensemble.stop()
        _say("ZooKeeper has stopped.")
    finally:
        ensemble.kill()


def _watch(ensemble: ZooKeeperEnsemble) -> None:
    """Until a signal comes, or until too few servers are left to serve."""
    running = list(ensemble.servers)
    while len(running) * 2 > len(ensemble.servers):
        time.sleep(_WATCH_INTERVAL_S)
        for server in [server for server in running if not server.is_running]:
            running.remove(server)
            _say(f"  ended       the server at {server.address}, see {server.server_log}")
    raise _CannotRunError("Too few ZooKeeper servers are left to serve.")


@contextlib.contextmanager
def _directory_in_use(directory: Path, server_count: int) -> Iterator[None]:
    """The directory, made if need be, for this process alone."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        lock = (directory / _LOCK_FILE).open("w")
    except OSError as error:
        raise _CannotRunError(
            f"The data directory {directory} cannot be used: {error.strerror}."
        ) from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise _CannotRunError(
                f"The data directory {directory} is in use by another `headwater zookeeper`."
            ) from error
        _check_server_count(directory, server_count)
        yield


def _check_server_count(directory: Path, server_count: int) -> None:
    """An ensemble of another size would begin with nothing, and seem to have lost all."""
    is_single = (directory / "data").exists()
    found = 1 if is_single else len(list(directory.glob("server-*")))
    if found not in (0, server_count):
        raise _CannotRunError(
            f"The data directory {directory} belongs to {counted(found, 'server')}, "
            f"not {server_count}: start it with --ensemble {found}, or choose another --data-dir."
        )


@contextlib.contextmanager
def _stopped_by_signals() -> Iterator[None]:
    def on_signal(number: int, frame: FrameType | None) -> None:
        for each in (signal.SIGINT, signal.SIGTERM):
            signal.signal(each, at_once)
        raise _StopWanted

    def at_once(number: int, frame: FrameType | None) -> None:
        # The servers end with this process.
        os._exit(1)

    before = {each: signal.signal(each, on_signal) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _say(line: str) -> None:
    print(line, flush=True)
