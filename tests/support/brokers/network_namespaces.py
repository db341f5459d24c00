"""A network namespace for each broker, with lines between them that can be cut silently.

    with BrokerNetwork() as network:
        cluster = HeadwaterCluster(..., hosts=network.hosts, command_prefixes=network.prefixes)
        with network.cut([(1, 2), (1, 3)]):
            ...                     # broker 1 hears neither of the others, and nobody tells it so

The namespaces hang on a bridge of this machine, which has two addresses there: clients of this
process come from one, the brokers' ZooKeeper is reached at the other. A line is cut by giving one
end a hardware address for the other that nobody has: packets leave and arrive nowhere, as on a
broken line, while connections stay open on both ends.

It needs the right to make namespaces. What a killed test run left behind goes with the next.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.support.brokers.three_brokers import BROKER_IDS
from tests.support.requirements import require_tool, skip_or_fail

#: The ends of a line, beside the brokers' numbers.
CLIENTS = 100
STORE = 101

_NOBODY = "02:00:00:00:00:99"
_OWN_NAME = re.compile(r"hw[bn](\d+)(?:-\d)?")
_OTHER_SUBNETS_MAX = 50

Line = tuple[int, int]


class BrokerNetwork:
    """See the module's text; running while it is entered."""

    def __init__(self) -> None:
        self._ip = require_tool("ip")
        pid = os.getpid()
        self._bridge = f"hwb{pid}"
        self._namespaces = {broker_id: f"hwn{pid}-{broker_id}" for broker_id in BROKER_IDS}
        self._subnet = ""

    @property
    def hosts(self) -> dict[int, str]:
        return {broker_id: f"{self._subnet}.{10 + broker_id}" for broker_id in BROKER_IDS}

    @property
    def prefixes(self) -> dict[int, tuple[str, ...]]:
        """What runs a command in a broker's namespace."""
        return {
            broker_id: (self._ip, "netns", "exec", name)
            for broker_id, name in self._namespaces.items()
        }

    @property
    def store_host(self) -> str:
        return f"{self._subnet}.2"

    @contextlib.contextmanager
    def cut(self, lines: Iterable[Line]) -> Iterator[None]:
        """Between the two ends of each of these lines nothing arrives."""
        cut = list(lines)
        try:
            for line in cut:
                for here, there in itertools.permutations(line):
                    self._neighbour(here, there, "replace", "lladdr", _NOBODY, "nud", "permanent")
            yield
        finally:
            for line in cut:
                for here, there in itertools.permutations(line):
                    self._neighbour(here, there, "del")

    def __enter__(self) -> Self:
        _remove_leftovers(self._ip)
        try:
            self._build()
        except subprocess.CalledProcessError as failed:
            self._remove()
            skip_or_fail(f"this test needs network namespaces: {failed.stderr.strip()}")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._remove()

    def _build(self) -> None:
        taken = _run(self._ip, "-o", "-4", "addr")
        for number in itertools.islice(itertools.count(os.getpid()), _OTHER_SUBNETS_MAX):
            self._subnet = f"10.203.{number % 250}"
            if f" {self._subnet}." not in taken:
                break
        self._do("link", "add", self._bridge, "type", "bridge")
        # The first is the one that connections of this process come from.
        for last in (1, 2):
            self._do("addr", "add", f"{self._subnet}.{last}/24", "dev", self._bridge)
        self._do("link", "set", self._bridge, "up")
        for broker_id, name in self._namespaces.items():
            outside = f"hwv{os.getpid()}-{broker_id}"
            self._do("netns", "add", name)
            self._do("link", "add", outside, "type", "veth", "peer", "name", "eth0", "netns", name)
            self._do("link", "set", outside, "master", self._bridge)
            self._do("link", "set", outside, "up")
            address = f"{self.hosts[broker_id]}/24"
            self._do("-n", name, "addr", "add", address, "dev", "eth0")
            self._do("-n", name, "link", "set", "eth0", "up")
            self._do("-n", name, "link", "set", "lo", "up")

    def _remove(self) -> None:
        with contextlib.suppress(subprocess.CalledProcessError):
            self._do("link", "del", self._bridge)
        for name in self._namespaces.values():
            # Its interfaces go with it, once the last process in it has ended.
            with contextlib.suppress(subprocess.CalledProcessError):
                self._do("netns", "del", name)

    def _neighbour(self, here: int, there: int, *change: str) -> None:
        """Change what `here` knows of the way to `there`."""
        # This machine's two addresses cannot be told apart on its own side of the bridge; it is
        # enough that no broker's answer comes back.
        if here not in self._namespaces:
            return
        ends = {**self.hosts, CLIENTS: f"{self._subnet}.1", STORE: self.store_host}
        action, *rest = change
        name = self._namespaces[here]
        self._do("-n", name, "neigh", action, ends[there], *rest, "dev", "eth0")

    def _do(self, *arguments: str) -> None:
        _run(self._ip, *arguments)


def _run(*command: str) -> str:
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return done.stdout


def _remove_leftovers(ip: str) -> None:
    """Of test runs that are no more."""
    for kind, listed in (
        ("netns", _run(ip, "netns", "list")),
        ("link", _run(ip, "-o", "link", "show", "type", "bridge")),
    ):
        for match in _OWN_NAME.finditer(listed):
            if not Path(f"/proc/{match[1]}").exists():
                with contextlib.suppress(subprocess.CalledProcessError):
                    _run(ip, kind, "del", match[0])
