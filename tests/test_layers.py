"""Imports point up the list of layers, and never down; inside a package, rooms keep to theirs.

The first table says for each layer which others it may import besides itself, the second for the
rooms of a package which rooms beside them. Files that stand in a package and in no room of it are
its front: they import any room, and any room imports them. Every import statement counts, also
those inside functions and those made for type checkers.
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

_SOURCE = Path(__file__).parent.parent / "src" / "headwater"

_SERVER = (
    *("base", "wire", "net", "storage", "cluster", "replication"),
    *("delay", "coordinator", "audit", "broker"),
)
_FRONT = ("balance", "client", "delivery", "pipeline", "console", "cli")
_JAVA = ("java", "zookeeper")

_MAY_IMPORT: dict[str, frozenset[str]] = {
    **{layer: frozenset(_SERVER[:depth]) for depth, layer in enumerate(_SERVER)},
    "client": frozenset({"base", "wire", "net"}),
    "delivery": frozenset({*_SERVER, "client"}),
    "pipeline": frozenset({"base", "client", "delivery", "java"}),
    "console": frozenset({"base", "client"}),
    # Programs in Java that run beside Headwater, and ZooKeeper's servers, which are one.
    "java": frozenset({"base"}),
    "zookeeper": frozenset({"base", "java"}),
    # Plans where replicas should lie, and asks nobody.
    "balance": frozenset({"base"}),
    "cli": frozenset({*_SERVER, *_FRONT, *_JAVA}),
    "testing": frozenset({*_SERVER, *_FRONT, *_JAVA}),
    "sim": frozenset({*_SERVER, *_FRONT, "testing"}),
    # The files beside the layers: the package itself holds the version and the client's names,
    # `errors` the client's errors, and `-m` starts the command.
    "__init__": frozenset({"base", "client"}),
    "errors": frozenset({"base", "client"}),
    "__main__": frozenset({"cli"}),
}

#: By package, which rooms each of its rooms may import.
_ROOMS: dict[str, dict[str, set[str]]] = {
    "storage": {
        "append": {"disk", "producers", "segments"},
        "compaction": {"disk", "indexes", "producers", "segments"},
        "directories": {"disk", "producers", "recovery", "segments"},
        "disk": set(),
        "indexes": {"disk"},
        "inspection": {"directories", "disk", "indexes", "producers", "segments"},
        "producers": {"disk", "segments"},
        "recovery": {"disk", "indexes", "producers", "segments"},
        "segments": {"disk", "indexes", "producers"},
    },
    "storage.inspection": {
        "dump": set(),
        "verify": {"dump"},
    },
    "cluster": {
        "backup": {"brokers", "image", "store"},
        "brokers": {"controller", "image", "partitions", "store", "topics"},
        "controller": {"brokers", "image", "partitions", "reassignment", "store", "topics"},
        "image": {"brokers", "controller", "store"},
        "partitions": {"brokers", "controller", "image", "store"},
        "reassignment": {"controller", "image", "partitions", "topics"},
        "store": set(),
        "topics": {"controller", "image", "partitions", "store"},
    },
    "cluster.store": {
        "embedded": set(),
        "zookeeper": set(),
    },
    "replication": {
        "following": {"partition", "throttling"},
        "leading": {"partition"},
        "partition": {"leading", "throttling"},
        "throttling": {"partition"},
        "waiting": {"partition"},
    },
    "delay": {
        "dead_letters": set(),
        "index": set(),
    },
    "coordinator": {
        "group": set(),
        "txn": set(),
    },
    "coordinator.group": {
        "classic": {"migration"},
        "consumer": {"classic", "migration"},
        "migration": {"classic", "consumer"},
        "offsets": {"classic"},
    },
    "broker": {
        "access": {"topics"},
        "fetch": {"peers"},
        "handlers": {
            "access",
            "fetch",
            "peers",
            "produce",
            "requests",
            "settings",
            "telemetry",
            "topics",
            "transactions",
        },
        "metrics": set(),
        "peers": {"requests", "settings"},
        "produce": {"peers", "transactions"},
        "requests": {"handlers", "settings"},
        "settings": set(),
        "start": {"peers", "settings", "topics"},
        "telemetry": {"metrics", "settings"},
        "topics": {"peers", "requests", "settings"},
        "transactions": {"requests", "topics"},
        "wiring": {"peers", "settings", "telemetry", "topics", "transactions"},
    },
    "client": {
        "admin": {"connection", "fetch", "kafka_errors", "machines", "producer", "settings"},
        "assignors": set(),
        "columns": {"consumer", "fetch", "kafka_errors"},
        "connection": {"kafka_errors", "machines"},
        "consumer": {
            "admin",
            "assignors",
            "columns",
            "connection",
            "failures",
            "fetch",
            "kafka_errors",
            "machines",
            "settings",
            "tracing",
        },
        "failures": {"consumer", "producer"},
        "fetch": {"kafka_errors"},
        "kafka_errors": set(),
        "machines": {"connection"},
        "producer": {
            "columns",
            "connection",
            "consumer",
            "kafka_errors",
            "machines",
            "settings",
            "spool",
            "tracing",
        },
        "ranges": {
            "admin",
            "columns",
            "connection",
            "fetch",
            "kafka_errors",
            "machines",
            "settings",
        },
        "settings": {"assignors", "connection", "spool"},
        "spool": {"connection", "producer"},
        # Its writer has a producer, as every producer may have a trace.
        "tracing": {"connection", "consumer", "producer", "settings"},
    },
    "client.consumer": {
        "committed": {"membership"},
        "fetching": {"committed", "membership", "polling", "positions"},
        "membership": {"committed", "fetching"},
        "polling": {"committed", "fetching", "membership"},
        "positions": {"committed", "fetching", "polling"},
        "workers": {"committed"},
    },
    "client.producer": {
        "batches": {"idempotence", "intake"},
        "engines": {"batches", "intake", "transactions"},
        "idempotence": set(),
        "intake": {"batches"},
        "sending": {"batches", "idempotence", "intake", "transactions"},
        "transactions": {"idempotence", "sending"},
    },
    "delivery": {
        "audit": set(),
        "delay_service": set(),
        "retry_service": {"delay_service", "worker"},
        "redrive": set(),
        "trace": {"redrive"},
        "worker": set(),
    },
    "delivery.redrive": {
        "letters": set(),
        "tasks": {"letters"},
    },
    "delivery.worker": {
        "crews": {"decisions"},
        "decisions": set(),
    },
    "balance": {
        "goals": set(),
    },
    "cli": {
        "audit": {"options", "output"},
        "brokers": {"cluster", "options", "output"},
        "cluster": {"metrics", "options", "output"},
        "completion": set(),
        "configs": {"options", "output"},
        "delay_service": {"options"},
        "delay": {"options", "output"},
        "demo": set(),
        "dlq": {"options", "output"},
        "doctor": {"cluster", "metrics", "options", "output", "serve"},
        "elections": {"options", "output"},
        "groups": {"options", "output"},
        "lake": {"options", "output"},
        "log": {"output"},
        "metadata": {"serve"},
        "metrics": {"options", "output"},
        "options": {"output"},
        "output": set(),
        "perf": {"options", "output", "records"},
        "pipeline": {"options", "output"},
        "reassign": {"brokers", "options", "output"},
        "records": {"options", "output"},
        "retry_service": {"delay_service", "options"},
        "retry": {"options", "output"},
        "serve": set(),
        "topics": {"cluster", "options", "output"},
        "trace": {"options", "output"},
        "transactions": {"options", "output"},
        "zookeeper": set(),
    },
    "cli.audit": {
        "canary": set(),
        "ids": set(),
        "replicas": set(),
        "watch": set(),
    },
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


def _room(package: str, module: str) -> str | None:
    """The room of a package that a module, or a name in it, is in; None outside of all rooms."""
    if not module.startswith(f"{package}."):
        return None
    first = module.removeprefix(f"{package}.").split(".")[0]
    return first if first in _ROOMS[package] else None


def _doors(source: str, module: str) -> Iterator[tuple[str, str, str, int]]:
    """Package, room, room beside it and line of what a module imports from rooms beside its own."""
    for line, name in _imported_modules(source, ["headwater", *module.split(".")[:-1]]):
        for package in _ROOMS:
            here, there = _room(package, module), _room(package, name.removeprefix("headwater."))
            if here is not None and there is not None and here != there:
                yield package, here, there, line


def _rooms_on_disk(package: str) -> set[str]:
    folder = _SOURCE.joinpath(*package.split("."))
    return {path.parent.name for path in folder.glob("*/__init__.py")}


@pytest.mark.parametrize("package", _ROOMS)
def test_every_room_has_its_row(package: str) -> None:
    assert _rooms_on_disk(package) == _ROOMS[package].keys()


def test_rooms_import_what_their_rows_say_and_all_of_it() -> None:
    used: set[tuple[str, str, str]] = set()
    wrong = []
    for module, path in _modules():
        for package, here, there, line in _doors(path.read_text(), module):
            used.add((package, here, there))
            if there not in _ROOMS[package][here]:
                wrong.append(f"{module} line {line}: {package}.{here} may not import {there}")
    assert not wrong, "\n".join(wrong)
    allowed = {
        (package, here, there)
        for package, rows in _ROOMS.items()
        for here, others in rows.items()
        for there in others
    }
    assert allowed == used, f"nobody uses these any more: {sorted(allowed - used)}"


def test_a_door_between_rooms_is_found() -> None:
    source = "from headwater.storage.directories import maintenance\nimport headwater.base.ids"
    assert list(_doors(source, "storage.disk.files")) == [("storage", "disk", "directories", 1)]
    assert list(_doors("from headwater.storage.errors import LogError", "storage.disk.files")) == []


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
