"""kafkajs, a client in JavaScript, and how it gets from npm onto this machine.

`python -m tests.support.other_clients.kafkajs` fetches it once, into the cache beside the jars of
Apache Kafka. Tests run a program of ours with it, under Node.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

from headwater.java.installation import cache_root
from tests.support.other_clients.round_trips import DelayedRoundTrip
from tests.support.requirements import require_tool, skip_or_fail

VERSION: Final = "2.2.4"
_ROUND_TRIP: Final = Path(__file__).with_name("kafkajs_round_trip.js")
_DELAYED: Final = Path(__file__).with_name("kafkajs_delayed.js")
_TIMEOUT_S: Final = 90.0


def home() -> Path:
    """Where it is kept, or would be."""
    return cache_root() / f"kafkajs-{VERSION}"


def fetch() -> None:
    """Fetch it, unless it is there; the directory is whole or absent."""
    if _modules().is_dir():
        return
    cache_root().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache_root(), prefix="kafkajs-") as parent:
        directory = Path(parent) / "package"
        directory.mkdir()
        quiet = ("--no-fund", "--no-audit", "--no-package-lock", "--ignore-scripts", "--silent")
        command = ("npm", "install", *quiet, "--prefix", str(directory), f"kafkajs@{VERSION}")
        subprocess.run(command, check=True)
        try:
            directory.rename(home())
        except OSError:
            # Another process was faster.
            if not _modules().is_dir():
                raise


def round_trip(bootstrap: str, topic: str, group: str, message_count: int) -> dict[str, Any]:
    """Write messages one by one and read them as a group; what the program of ours reports."""
    report: dict[str, Any] = json.loads(
        _run(_ROUND_TRIP, bootstrap, topic, group, str(message_count))
    )
    return report


def delayed_round_trip(
    bootstrap: str, topic: str, group: str, message_count: int
) -> DelayedRoundTrip:
    """The same with delays: see `round_trips`."""
    return DelayedRoundTrip.parse(_run(_DELAYED, bootstrap, topic, group, str(message_count)))


def _run(program: Path, *arguments: str) -> str:
    node = require_tool("node")
    if not _modules().is_dir():
        skip_or_fail(
            "this test needs kafkajs: `python -m tests.support.other_clients.kafkajs` fetches it"
        )
    finished = subprocess.run(
        [node, str(program), *arguments],
        env={**os.environ, "NODE_PATH": str(home() / "node_modules")},
        capture_output=True,
        text=True,
        check=False,
        timeout=_TIMEOUT_S,
    )
    assert finished.stdout, finished.stderr
    return finished.stdout


def _modules() -> Path:
    return home() / "node_modules" / "kafkajs"


if __name__ == "__main__":
    if shutil.which("npm") is None:
        sys.exit("kafkajs cannot be fetched: there is no npm on the PATH.")
    try:
        fetch()
    except subprocess.CalledProcessError as failed:
        sys.exit(f"kafkajs could not be fetched: npm ended with {failed.returncode}.")
