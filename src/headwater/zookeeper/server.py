"""One ZooKeeper server in a process of its own, in its own directory.

    server = ZooKeeperServer(directory, port=2181)
    server.start()
    ...
    server.stop()

The directory holds `zoo.cfg`, written anew at each start, `server.log`, which grows over restarts,
and `data`. `launch` starts the process, `wait_until_serving` returns when it serves; of an ensemble
all are launched before any of them can serve, so the two are apart. `stop` ends it in order, `kill`
as a crash would, `pause` and `resume` let it fall silent without ending. The process ends with this
one, however this one ends.
"""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from headwater.base.checks import check
from headwater.java.installation import Installation
from headwater.java.processes import forget_process, kill_process, start_process
from headwater.zookeeper.configuration import Member, write_configuration
from headwater.zookeeper.release import resolve_zookeeper

HOST: Final = "127.0.0.1"
DEFAULT_HEAP: Final = "128m"
_MAIN_CLASS: Final = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
_POLL_INTERVAL_S: Final = 0.05
_ASK_TIMEOUT_S: Final = 2.0
_NOT_SERVING: Final = "not currently serving"


class ZooKeeperError(Exception):
    """A server did not start or stop as it should; the message may end with its last log lines."""


class ZooKeeperServer:
    """A server that stands alone, or one of an ensemble. See the module's text."""

    def __init__(
        self,
        directory: Path,
        *,
        port: int,
        host: str = HOST,
        member_id: int = 1,
        members: Sequence[Member] = (),
        heap: str = DEFAULT_HEAP,
        flush: bool = True,
        start_timeout_s: float = 60.0,
        program: Installation | None = None,
    ) -> None:
        """`host` is the address that clients come to; without `flush` a power cut loses changes."""
        self.directory = directory.absolute()
        self.port = port
        self.server_log = self.directory / "server.log"
        self._host = host
        self._member_id = member_id
        self._members = tuple(members)
        self._heap = heap
        self._flush = flush
        self._start_timeout_s = start_timeout_s
        self._program = program or resolve_zookeeper()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        """What a client of this machine is told to connect to."""
        return f"{HOST if self._host == '0.0.0.0' else self._host}:{self.port}"

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        return self._started_process().pid

    def start(self) -> None:
        """Start the server, and return when it serves."""
        self.launch()
        self.wait_until_serving()

    def launch(self) -> None:
        """Start the process and return at once."""
        check(self._process is None, "the server was started already")
        configuration = write_configuration(
            self.directory, self._host, self.port, self._member_id, self._members
        )
        flags = (
            "-Xms16m",
            f"-Xmx{self._heap}",
            *self._program.quick_start_flags,
            "-Dheadwater.log.level=INFO",
            f"-Dzookeeper.forceSync={'yes' if self._flush else 'no'}",
            # Log files of 64 MB each, which is the default, only make small disks full.
            "-Dzookeeper.preAllocSize=1024",
            # Members that start at different moments find each other within this time.
            "-Dzookeeper.fastleader.maxNotificationInterval=1000",
        )
        command = self._program.command(_MAIN_CLASS, str(configuration), jvm_flags=flags)
        with self.server_log.open("ab") as log:
            self._process = start_process(command, stdout=log, stderr=log)

    def wait_until_serving(self) -> None:
        """Return when the server answers, of an ensemble as a member that has a leader."""
        deadline = time.monotonic() + self._start_timeout_s
        while self.mode() is None:
            if not self.is_running:
                self.kill()
                raise ZooKeeperError(f"ZooKeeper ended while starting:\n{self.log_tail()}")
            if time.monotonic() > deadline:
                self.kill()
                raise ZooKeeperError(
                    f"ZooKeeper did not start within {self._start_timeout_s} s:\n{self.log_tail()}"
                )
            time.sleep(_POLL_INTERVAL_S)

    def mode(self) -> str | None:
        """`standalone`, `leader` or `follower`; None while it does not serve."""
        answer = self.ask("srvr")
        if answer is None or _NOT_SERVING in answer:
            return None
        modes = [line.partition(": ")[2] for line in answer.splitlines() if "Mode: " in line]
        return modes[0] if modes else None

    def ask(self, word: str) -> str | None:
        """What the server says to one of its four-letter words; None if it cannot be heard."""
        if not self.is_running:
            return None
        host, _, port = self.address.rpartition(":")
        answer = b""
        try:
            with socket.create_connection((host, int(port)), timeout=_ASK_TIMEOUT_S) as connection:
                connection.sendall(word.encode())
                while piece := connection.recv(65_536):
                    answer += piece
        except OSError:
            return None
        return answer.decode(errors="replace")

    def stop(self, timeout_s: float = 15.0) -> None:
        """Ask the server to end, and wait until it has; it is killed if it does not."""
        process = self._started_process()
        process.send_signal(signal.SIGCONT)
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.kill()
            raise ZooKeeperError(
                f"ZooKeeper did not stop within {timeout_s} s:\n{self.log_tail()}"
            ) from None
        forget_process(process)
        self._process = None

    def kill(self) -> None:
        """End the server at once, as a crash would. No error if it has ended already."""
        if self._process is not None:
            kill_process(self._process)
            self._process = None

    def pause(self) -> None:
        """Stop the process where it is; it keeps its connections and says nothing."""
        process = self._started_process()
        process.send_signal(signal.SIGSTOP)
        # Its threads stop one after the other, and the last may still answer somebody. Whether it
        # has ended instead is left for others to find out.
        os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def resume(self) -> None:
        """Let a paused process go on."""
        self._started_process().send_signal(signal.SIGCONT)

    def log_tail(self, lines: int = 30) -> str:
        """The last lines of the server's log."""
        if not self.server_log.exists():
            return ""
        return "\n".join(self.server_log.read_text(errors="replace").splitlines()[-lines:])

    def _started_process(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise ZooKeeperError("The ZooKeeper server is not running.")
        return self._process
