"""kcat as a reader of transactions; it cannot write any."""

from __future__ import annotations

import subprocess

from tests.support.other_clients.contract import FETCH_WAIT_MS, TIMEOUT_S
from tests.support.other_clients.transactions.contract import Isolation
from tests.support.requirements import require_tool


class KcatReader:
    """See `contract.TransactionReader`."""

    name = "kcat"

    def __init__(self, bootstrap: str) -> None:
        self._kcat = require_tool("kcat")
        self._bootstrap = bootstrap

    def read(self, topic: str, isolation: Isolation, partition: int = 0) -> list[bytes]:
        command = [self._kcat, "-b", self._bootstrap, "-C", "-t", topic, "-p", str(partition)]
        command += ["-o", "beginning", "-e", "-q", "-X", f"isolation.level={isolation}"]
        command += ["-X", f"fetch.wait.max.ms={FETCH_WAIT_MS}"]
        done = subprocess.run(command, capture_output=True, timeout=TIMEOUT_S, check=True)
        return done.stdout.splitlines()
