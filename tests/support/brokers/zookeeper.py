"""ZooKeeper for tests: one server that the tests of a process share, and ensembles of their own.

    address = shared_zookeeper().address + fresh_chroot()       # a clean store, in no time

    with zookeeper_ensemble(tmp_path) as ensemble:              # three servers, some two seconds
        ensemble.leader().kill()
        ensemble.servers[0].pause()

A test that only needs a store takes the shared server with a chroot of its own, and must not stop
it. One that kills, stops or freezes servers has its own.
"""

import atexit
import functools
import itertools
import os
import shutil
import tempfile
from pathlib import Path

from headwater.java.installation import Installation, ProgramUnavailableError
from headwater.zookeeper.ensemble import ZooKeeperEnsemble, free_ports
from headwater.zookeeper.release import find_zookeeper, resolve_zookeeper
from headwater.zookeeper.server import ZooKeeperServer
from tests.support.requirements import skip_or_fail

_chroots = itertools.count()


def require_zookeeper() -> Installation:
    """ZooKeeper's program; the running test is skipped, or failed, where there is none."""
    try:
        must_run = os.environ.get("HEADWATER_REQUIRE_ALL") == "1"
        program = resolve_zookeeper() if must_run else find_zookeeper()
    except ProgramUnavailableError as unavailable:
        skip_or_fail(str(unavailable))
    if program is None:
        skip_or_fail("this test needs ZooKeeper: `headwater zookeeper` fetches it once")
    return program


def shared_zookeeper() -> ZooKeeperServer:
    """A server that serves all tests of this process, started by the first that asks."""
    return _shared_server(require_zookeeper())


def fresh_chroot() -> str:
    """A path that nobody has used, to stand behind the address of a server."""
    return f"/test-{os.getpid()}-{next(_chroots)}"


def zookeeper_ensemble(
    directory: Path, server_count: int = 3, host: str = "127.0.0.1"
) -> ZooKeeperEnsemble:
    """Servers of a test's own, not started yet; `with` starts them and ends them."""
    return ZooKeeperEnsemble(
        directory,
        ports=free_ports(server_count),
        host=host,
        flush=False,
        program=require_zookeeper(),
    )


@functools.cache
def _shared_server(program: Installation) -> ZooKeeperServer:
    directory = Path(tempfile.mkdtemp(prefix="headwater-zookeeper-"))
    [port] = free_ports(1)
    server = ZooKeeperServer(directory, port=port, flush=False, program=program)
    server.start()

    def end() -> None:
        server.kill()
        shutil.rmtree(directory, ignore_errors=True)

    atexit.register(end)
    return server
