"""Imports point up the list of layers, and never down.

The table says for each layer which others it may import besides itself. Every import statement
counts, also those inside functions and those made for type checkers.
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

_SOURCE = Path(__file__).parent.parent / "src" / "headwater"

_SERVER = ("base", "wire", "net", "storage", "cluster", "replication", "coordinator", "broker")
_FRONT = ("client", "delivery", "pipeline", "console", "cli")
_JAVA = ("java", "zookeeper")

_MAY_IMPORT: dict[str, frozenset[str]] = {
    **{layer: frozenset(_SERVER[:depth]) for depth, layer in enumerate(_SERVER)},
    "client": frozenset({"base", "wire", "net"}),
    "delivery": frozenset({*_SERVER, "client"}),
    "pipeline": frozenset({"base", "client", "java"}),
    "console": frozenset({"base", "client"}),
    # Programs in Java that run beside Headwater, and ZooKeeper's servers, which are one.
    "java": frozenset({"base"}),
    "zookeeper": frozenset({"base", "java"}),
    "cli": frozenset({*_SERVER, *_FRONT, *_JAVA}),
    "testing": frozenset({*_SERVER, *_FRONT, *_JAVA}),
    "sim": frozenset({*_SERVER, *_FRONT, "testing"}),
    # The files beside the layers: the package itself holds the version and the client's names,
    # `errors` the client's errors, and `-m` starts the command.
    "__init__": frozenset({"base", "client"}),
    "errors": frozenset({"base", "client"}),
    "__main__": frozenset({"cli"}),
}


def _imported_modules(source: str, package: list[str]) -> Iterator[tuple[int, str]]:
    """Line and absolute name of all that a module imports; `package` is where the module lies."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parents = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*parents, *([node.module] if node.module else [])])
            # What is imported from a package may itself be a module in it.
            yield from ((node.lineno, f"{module}.{alias.name}") for alias in node.names)


def _violations(source: str, module: str) -> list[str]:
    """What `source`, as the module of that dotted name below headwater, may not import."""
    parts = module.split(".")
    layer = parts[0]
    found = []
    for line, name in _imported_modules(source, ["headwater", *parts[:-1]]):
        root, _, rest = name.partition(".")
        target = rest.split(".")[0]
        if root == "headwater":
            if target in _MAY_IMPORT and target != layer and target not in _MAY_IMPORT[layer]:
                found.append(f"{module} line {line}: {layer} may not import {target}")
        elif root in ("tests", "bench"):
            found.append(f"{module} line {line}: the package may not import {root}")
        elif layer == "base" and root not in sys.stdlib_module_names:
            found.append(f"{module} line {line}: base may not import {root}")
    return found


def _modules() -> list[tuple[str, Path]]:
    paths = sorted(_SOURCE.rglob("*.py"))
    return [(".".join(path.relative_to(_SOURCE).with_suffix("").parts), path) for path in paths]


def test_every_import_points_up() -> None:
    modules = _modules()
    assert len(modules) > 10
    undeclared = {name.split(".")[0] for name, _ in modules} - _MAY_IMPORT.keys()
    assert not undeclared, f"these have no place in the list of layers: {sorted(undeclared)}"
    violations = [fault for name, path in modules for fault in _violations(path.read_text(), name)]
    assert not violations, "\n".join(violations)


def test_nothing_imports_the_simulator() -> None:
    assert [layer for layer, targets in _MAY_IMPORT.items() if "sim" in targets] == []


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("base.ids", "import kio"),
        ("base.ids", "from headwater.wire import records"),
        ("wire.frame", "import headwater.storage.segments.segment"),
        ("wire.frame", "from headwater import storage"),
        ("wire.frame", "def f() -> None:\n    from headwater.net.listener import Listener"),
        ("wire.records.batch", "from ...storage import segment"),
        ("wire.frame", "from .. import storage"),
        ("storage.segment", "from headwater.sim.disk import Disk"),
        ("client.producer", "from headwater.storage.disk.files import File"),
        ("console.app", "from headwater.wire.frame import Frame"),
        ("storage.segment", "from tests.support import tiers"),
        ("testing.plugin", "import headwater.sim"),
    ],
)
def test_a_wrong_import_is_found(module: str, source: str) -> None:
    assert len(_violations(source, module)) == 1


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("base.ids", "import base64\nfrom headwater.base.errors import KafkaError"),
        ("wire.frame", "from headwater.base import ids\nimport kio"),
        ("wire.records.batch", "from .compression import compress\nfrom ..frame import Frame"),
        ("cli.app", "from headwater import __version__\nfrom headwater.storage import segment"),
        ("sim.disk", "from headwater.storage.disk.files import File\nimport headwater.testing"),
        ("__main__", "from headwater.cli.app import main"),
    ],
)
def test_a_right_import_is_not(module: str, source: str) -> None:
    assert _violations(source, module) == []
