"""Several ZooKeeper servers that agree, or one that stands alone, behind the same few calls.

    with ZooKeeperEnsemble(directory, ports=[2181, 2182, 2183]) as ensemble:
        connect(ensemble.address)
        ensemble.servers[0].kill()

Each server has a directory of its own below the given one. The ports between the servers are free
ones that are chosen when the ensemble is made, and stay the same for as long as it is there.
"""

import random
import socket
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from headwater.base.checks import check
from headwater.java.installation import Installation
from headwater.zookeeper.configuration import Member
from headwater.zookeeper.release import resolve_zookeeper
from headwater.zookeeper.server import DEFAULT_HEAP, HOST, ZooKeeperError, ZooKeeperServer

# Below the ports that systems give to outgoing connections, which could take one of ours between
# our looking and the server's binding.
_PORTS: Final = range(20_000, 32_000)


class ZooKeeperEnsemble:
    """One server for each port. See the module's text."""

    def __init__(
        self,
        directory: Path,
        *,
        ports: Sequence[int],
        host: str = HOST,
        heap: str = DEFAULT_HEAP,
        flush: bool = True,
        program: Installation | None = None,
    ) -> None:
        check(len(ports) > 0, "an ensemble needs a server")
        program = program or resolve_zookeeper()
        self.directory = directory.absolute()
        self.servers = [
            ZooKeeperServer(
                self.directory / f"server-{member_id}" if len(ports) > 1 else self.directory,
                port=port,
                host=host,
                member_id=member_id,
                members=members,
                heap=heap,
                flush=flush,
                program=program,
            )
            for members in [_members(len(ports), ports)]
            for member_id, port in enumerate(ports, 1)
        ]

    @property
    def address(self) -> str:
        """What a client is told to connect to: all servers, separated by commas."""
        return ",".join(server.address for server in self.servers)

    def start(self) -> None:
        """Start all servers, and return when they serve; if one cannot, none is left running."""
        try:
            for server in self.servers:
                server.launch()
            for server in self.servers:
                server.wait_until_serving()
        except BaseException:
            self.kill()
            raise

    def stop(self) -> None:
        """End the servers that run in order."""
        for server in self.servers:
            if server.is_running:
                server.stop()
            server.kill()

    def kill(self) -> None:
        """End all servers at once."""
        for server in self.servers:
            server.kill()

    def leader(self) -> ZooKeeperServer:
        """The server that leads at the moment, which of a single one is that one."""
        for server in self.servers:
            if server.mode() in ("leader", "standalone"):
                return server
        raise ZooKeeperError("The ZooKeeper ensemble has no leader at the moment.")

    def followers(self) -> list[ZooKeeperServer]:
        """The servers that follow at the moment."""
        return [server for server in self.servers if server.mode() == "follower"]

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.kill()


def free_ports(count: int, taken: Sequence[int] = ()) -> list[int]:
    """Ports of this machine that nobody listens on."""
    found: list[int] = []
    for port in random.sample(_PORTS, min(len(_PORTS), 100 * count)):
        if len(found) == count:
            break
        if port not in taken and is_free(HOST, port):
            found.append(port)
    if len(found) < count:
        raise ZooKeeperError(f"No {count} ports are free between {_PORTS[0]} and {_PORTS[-1]}.")
    return found


def is_free(host: str, port: int) -> bool:
    """Whether a server could listen there."""
    with socket.socket() as probe:
        # As servers do: what only lingers after a connection's end is no obstacle.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True


def _members(count: int, ports: Sequence[int]) -> list[Member]:
    if count == 1:
        return []
    between = free_ports(2 * count, ports)
    return [
        Member(number + 1, HOST, between[2 * number], between[2 * number + 1])
        for number in range(count)
    ]
