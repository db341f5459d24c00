"""Test tiers for the whole tree, and the fixture through which a test asks for a tool."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# A broker imports these in a thread. Pytest parses what it imports, and Python 3.11 fails now and
# then when two threads parse at once, so here they are imported before there is any thread.
import headwater.coordinator.group.shard
import headwater.coordinator.txn.transaction_shard  # noqa: F401
from tests.support.quick_tier import forbid_sockets, is_left_out
from tests.support.requirements import require_tool as find_tool_or_skip
from tests.support.tiers import full_tier, quick_tier, tier

# A loaded machine makes generation slow without anything being wrong, so slowness is no failure.
for _name, _examples in (("quick", 20), ("small", 50), ("full", 500)):
    settings.register_profile(
        _name,
        max_examples=_examples,
        deadline=None,
        print_blob=True,
        suppress_health_check=[HealthCheck.too_slow],
    )
settings.load_profile(tier())


def pytest_configure() -> None:
    if quick_tier():
        forbid_sockets()


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    return True if quick_tier() and is_left_out(collection_path) else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if full_tier():
        return
    held_back = [item for item in items if item.get_closest_marker("full") is not None]
    if held_back:
        config.hook.pytest_deselected(items=held_back)
        items[:] = [item for item in items if item.get_closest_marker("full") is None]


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """A tier runs for minutes, or an hour: tell of a failure when it happens, not in the end."""
    if report.failed and not quick_tier() and not os.environ.get("PYTEST_XDIST_WORKER"):
        print(f"\nFAILED {report.nodeid} ({report.when}, {report.duration:.1f} s)", flush=True)


@pytest.fixture
def require_tool() -> Callable[[str], str]:
    """`require_tool("kcat")` gives the tool's path, or ends the test with the reason."""
    return find_tool_or_skip
