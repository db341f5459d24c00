"""A member of a group in a process of its own, which can die as processes do.

    python -m tests.support.other_clients.groups.process CLIENT ADDRESS MEMBERSHIP

polls until SIGTERM, commits what it has got after every poll, and tells what happens in lines of
JSON. `MemberProcess` starts one and listens.
"""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
import threading
from types import TracebackType
from typing import Self

from headwater.java.processes import forget_process, kill_process, start_process
from tests.support.other_clients.contract import TIMEOUT_S, ClientError
from tests.support.other_clients.groups.contract import GroupRecord, Membership, Owned
from tests.support.other_clients.groups.known import MEMBERS_BY_NAME


class MemberProcess:
    """See the module's text."""

    def __init__(self, client: str, bootstrap: str, membership: Membership) -> None:
        self.records: list[GroupRecord] = []
        self.owned: Owned = frozenset()
        self._is_ending = False
        command = [sys.executable, "-m", __name__, client, bootstrap, json.dumps(membership)]
        self._process = start_process(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def kill(self) -> None:
        """As a crash would: its sockets close, and nobody has said good-bye."""
        self._is_ending = True
        kill_process(self._process)
        self._listener.join()
        self._close_pipes()

    def stop(self) -> None:
        """Let it leave in order."""
        self._is_ending = True
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
        assert self._process.wait(TIMEOUT_S) == 0
        forget_process(self._process)
        self._listener.join()
        self._close_pipes()

    def check(self) -> None:
        """Raise if it has ended by itself."""
        if self._process.poll() is not None and not self._is_ending:
            assert self._process.stderr is not None
            raise AssertionError(self._process.stderr.read().decode())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if not self._is_ending:
            self.kill()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            told = json.loads(line)
            self.owned = frozenset((topic, number) for topic, number in told["owned"])
            self.records += [
                GroupRecord(topic, number, offset, value.encode())
                for topic, number, offset, value in told["records"]
            ]

    def _close_pipes(self) -> None:
        for pipe in (self._process.stdout, self._process.stderr):
            assert pipe is not None
            pipe.close()


def main() -> None:
    client, bootstrap, membership_json = sys.argv[1:]
    fields = json.loads(membership_json)
    membership = Membership._make(
        tuple(each) if isinstance(each, list) else each for each in fields
    )
    is_ending = threading.Event()
    signal.signal(signal.SIGTERM, lambda number, frame: is_ending.set())
    member = MEMBERS_BY_NAME[client](bootstrap, membership)
    told: Owned | None = None
    while not is_ending.is_set():
        records = member.poll()
        if records:
            # In the course of a rebalance a commit may be refused: then they come again, to
            # whoever owns the partition then.
            with contextlib.suppress(ClientError):
                member.commit()
        owned = member.assignment()
        if records or owned != told:
            told = owned
            report = {
                "owned": sorted(owned),
                "records": [
                    (topic, number, offset, (value or b"").decode())
                    for topic, number, offset, value in records
                ],
            }
            print(json.dumps(report), flush=True)
    member.close()


if __name__ == "__main__":
    main()
