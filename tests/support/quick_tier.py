"""The quick tier: the tests that reach nothing outside of their own process.

They are chosen by what they import. A test module that reaches, itself or through other modules of
`tests`, something that opens sockets or starts programs is left out before pytest even imports it,
and so are the campaigns of the simulation, which take minutes. Nothing has to be marked by hand.
What the choice overlooks is found out when it runs: in this tier a test that opens a socket fails.
"""

import ast
import functools
import socket
from pathlib import Path
from typing import Any

import pytest

TESTS = Path(__file__).parents[1]
ROOT = TESTS.parent

#: Whoever imports one of these, or something in it, may open sockets or start programs.
OUTSIDE = (
    "aiokafka",
    "confluent_kafka",
    "headwater.broker.metrics.metrics_endpoint",
    "headwater.broker.server",
    "headwater.cli.app",
    "headwater.java",
    "headwater.net.http_endpoint",
    "headwater.net.listener",
    "headwater.net.peer_channel",
    "headwater.pipeline.spark",
    "headwater.testing",
    "headwater.zookeeper",
    "kafka",
    "multiprocessing",
    "pyspark",
    "socket",
    "subprocess",
)
#: Folders whose tests take much time, whether they need something from outside or not.
LENGTHY = ("bench", "sim")


def is_left_out(path: Path) -> bool:
    """Whether the quick tier does without a file or folder of `tests`."""
    if path.is_dir():
        return path.parent == TESTS and path.name in LENGTHY
    return path.name.startswith("test_") and reaches_outside(path)


def reaches_outside(path: Path) -> bool:
    """Whether a module, or one of `tests` that it needs, imports something of `OUTSIDE`."""
    seen = {path}
    pending = [path]
    while pending:
        for name in _imported_names(pending.pop()):
            if any(name == outside or name.startswith(f"{outside}.") for outside in OUTSIDE):
                return True
            needed = ROOT / f"{name.replace('.', '/')}.py"
            if name.startswith("tests.") and needed not in seen and needed.exists():
                seen.add(needed)
                pending.append(needed)
    return False


@functools.cache
def _imported_names(path: Path) -> frozenset[str]:
    """All modules, and names of modules, that a file imports anywhere."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            names.add(node.module)
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
    return frozenset(names)


class SocketGuard(socket.socket):
    """A socket that may talk to its own process only, as an event loop's does."""

    def bind(self, address: Any, /) -> None:
        self._check()
        super().bind(address)

    def connect(self, address: Any, /) -> None:
        self._check()
        super().connect(address)

    def _check(self) -> None:
        if self.family != socket.AF_UNIX:
            pytest.fail("This opens a socket: name in quick_tier.OUTSIDE what it does so through.")


def forbid_sockets() -> None:
    """Let every test of this process that opens a socket fail."""
    socket.socket = SocketGuard  # type: ignore[misc]
