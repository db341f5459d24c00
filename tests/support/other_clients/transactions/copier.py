"""An exactly-once copy in a process of its own, which may be killed at any moment.

    python -m tests.support.other_clients.transactions.copier CLIENT ADDRESS GROUP INPUT OUTPUT ID

reads a topic as a member of a group, writes each record with a mark to the same partition of
another, and commits its offsets in the same transactions, a few records each. Whatever it cannot go
on after ends it, and whoever started it starts it again. `Copier` does that, and kills one that has
got stuck: librdkafka may wait for good for an answer that went down with the broker.
"""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from headwater.java.processes import kill_process, start_process
from tests.support.other_clients.groups.contract import Membership
from tests.support.other_clients.groups.known import MEMBERS_BY_NAME
from tests.support.other_clients.transactions.known import PRODUCERS_BY_NAME

RECORDS_PER_TRANSACTION = 5
MARK = b"copy of "
SESSION_TIMEOUT_MS = 2_000
#: How long a dead copier's transaction keeps others from reading on, unless it comes back sooner.
TRANSACTION_TIMEOUT_MS = 4_000
#: Longer than a start, a poll and a transaction take while the broker restarts.
STUCK_S = 6.0


class Copier:
    """A copier and its successors; see the module's text."""

    def __init__(
        self,
        client: str,
        bootstrap: str,
        group: str,
        source: str,
        target: str,
        identity: str,
        log: Path,
    ) -> None:
        self.client = client
        self.log = log
        self._command = [sys.executable, "-m", __name__, client, bootstrap]
        self._command += [group, source, target, identity]
        self._process = self._start()

    def keep_up(self) -> None:
        """Start it again if it has ended, or does nothing any more."""
        is_stuck = time.time() - self.log.stat().st_mtime > STUCK_S
        if is_stuck or self._process.poll() is not None:
            self.kill()
            self._process = self._start()

    def kill(self) -> None:
        """As a crash would."""
        kill_process(self._process)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.kill()

    def _start(self) -> subprocess.Popen[bytes]:
        with self.log.open("ab") as log:
            os.utime(self.log)
            return start_process(self._command, stdout=log, stderr=log)


def main() -> None:
    client, bootstrap, group, source, target, identity = sys.argv[1:]
    # First, so that what its predecessor left open is ended before any offset is asked for.
    producer = PRODUCERS_BY_NAME[client](bootstrap, identity, TRANSACTION_TIMEOUT_MS)
    member = MEMBERS_BY_NAME[client](
        bootstrap,
        Membership(
            group, (source,), session_timeout_ms=SESSION_TIMEOUT_MS, isolation="read_committed"
        ),
    )
    while True:
        # Its log is also how it shows that it is alive.
        os.utime(sys.stderr.fileno())
        records = iter(member.poll())
        # As of now: should the member be thrown out meanwhile, its offsets must be refused.
        metadata = member.group_metadata()
        while some := list(itertools.islice(records, RECORDS_PER_TRANSACTION)):
            producer.begin()
            for record in some:
                producer.send(target, MARK + (record.value or b""), record.partition)
            offsets = {(each.topic, each.partition): each.offset + 1 for each in some}
            producer.send_offsets(offsets, metadata)
            producer.commit()


if __name__ == "__main__":
    main()
