"""Where the broker starts tasks: in `BackgroundTasks`, unless somebody waits for what they do.

A task that fails while nobody waits for it fails in silence, see `base/background_tasks.py`.
"""

import ast
from pathlib import Path

_SOURCE = Path(__file__).parent.parent / "src" / "headwater"
_LAYERS = (
    "base",
    "wire",
    "net",
    "storage",
    "cluster",
    "replication",
    "delay",
    "coordinator",
    "audit",
    "broker",
)
_STARTS = ("create_task", "ensure_future")

#: How many tasks a module starts by itself, and who hears of their ends.
_SHORT_LIVED = {
    "base/background_tasks.py": (3, "this is the place"),
    "broker/peers/channels.py": (2, "whoever wants the connection; nobody needs one's end"),
    "broker/wiring/coordinators.py": (1, "whoever needs the modules imports them too"),
    "broker/metrics/metrics_endpoint.py": (1, "whoever asked for the page"),
    "broker/transactions/producer_ids.py": (1, "whoever needs an id; what is early is logged"),
    "broker/requests/tasks.py": (1, "the client: handlers answer what fails"),
    "cluster/controller/change_turns.py": (1, "whoever asked for the change"),
    "cluster/member.py": (2, "the start; when it is over the membership is watched"),
    "cluster/store/embedded/store.py": (1, "all who wait for the round, and who come later"),
    "cluster/store/zookeeper/connector.py": (1, "whoever begins the session"),
    "delay/checkpointing.py": (1, "the partition's own task, at its next round"),
    "delay/partition_delays.py": (2, "the partition's own task, at its next round"),
    "net/http_endpoint.py": (1, "the client: it logs and answers what fails"),
    "net/sender.py": (1, "the connection, by a callback"),
    "storage/directories/periodic_tasks.py": (1, "whoever runs them: the first failure ends all"),
    "storage/flush.py": (1, "all who wait for the round"),
}


def _started(source: str) -> int:
    """How often a module starts a task."""
    return sum(
        isinstance(node, ast.Attribute | ast.Name)
        and (node.attr if isinstance(node, ast.Attribute) else node.id) in _STARTS
        for node in ast.walk(ast.parse(source))
    )


def test_long_lived_tasks_are_started_in_one_place() -> None:
    found = {
        str(path.relative_to(_SOURCE)): count
        for layer in _LAYERS
        for path in sorted((_SOURCE / layer).rglob("*.py"))
        if (count := _started(path.read_text()))
    }
    assert found == {path: count for path, (count, _) in _SHORT_LIVED.items()}


def test_starts_are_found() -> None:
    assert _started("loop.create_task(work())") == 1
    assert _started("asyncio.ensure_future(work())") == 1
    assert _started("from asyncio import create_task\nstart = create_task") == 1
    assert _started("tasks.start('name', work())") == 0
