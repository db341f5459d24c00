"""The commands and programs of a document, run in order as a reader would type them.

    python -m tests.support.documented_commands README.md      # in the reader's directory

Blocks of `sh` run in bash, blocks of Python in the virtual environment, a test in pytest, each to
its end and each with success. A block under the mark below is for a terminal of its own: it is
waited for until it serves, or has printed something, and interrupted when the document ends.

Documents name fixed ports, which another process of the machine may have. So this module runs
itself in a network namespace of its own, where no port is taken and nothing can be downloaded:
what `make` and Java need is installed before.
"""

from __future__ import annotations

import fcntl
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Final, NamedTuple

STAYS_OPEN: Final = "<!-- stays open -->"
PYTHON: Final = ".venv/bin/python"
BLOCK_TIMEOUT_S: Final = 240.0
STOP_TIMEOUT_S: Final = 60.0

_BLOCK = re.compile(
    rf"(?P<mark>{STAYS_OPEN}\n)?^```(?P<kind>sh|python)\n(?P<text>.*?)^```$",
    re.DOTALL | re.MULTILINE,
)
_SIOCSIFFLAGS = 0x8914
_IFF_UP = 1


class Block(NamedTuple):
    kind: str
    text: str
    stays_open: bool

    @property
    def command(self) -> list[str]:
        if self.kind == "sh":
            return ["bash", "-e", "-o", "pipefail", "-c", self.text]
        if "def test_" in self.text:
            Path("test_documented.py").write_text(self.text)
            return [PYTHON, "-m", "pytest", "-q", "test_documented.py"]
        return [PYTHON, "-c", self.text]


def blocks(document: str) -> list[Block]:
    return [
        Block(block["kind"], block["text"], block["mark"] is not None)
        for block in _BLOCK.finditer(document)
    ]


class Terminal:
    """A block that stays open, and what it prints."""

    def __init__(self, block: Block) -> None:
        self._block = block
        self._process = subprocess.Popen(
            block.command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self._lines: list[str] = []
        self._is_up = threading.Event()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            print(line, end="", flush=True)
            self._lines.append(line)
            if self._block.kind == "python" or " is ready" in line:
                self._is_up.set()

    def wait_until_up(self) -> None:
        deadline = time.monotonic() + BLOCK_TIMEOUT_S
        while not self._is_up.wait(0.2):
            if self._process.poll() is not None:
                raise SystemExit(f"This ended:\n{self._block.text}")
            if time.monotonic() > deadline:
                raise SystemExit(f"This was not up in time:\n{self._block.text}")

    def interrupt(self) -> None:
        """Ctrl-C goes to all processes of a terminal. A server is to take it for a clean end."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGINT)
        try:
            self._process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            raise SystemExit(f"Ctrl-C did not end this:\n{self._block.text}") from None
        self._reader.join()
        if self._block.kind == "sh" and "has stopped" not in "".join(self._lines):
            raise SystemExit(f"This did not end cleanly:\n{self._block.text}")


def run(document: str) -> None:
    terminals: list[Terminal] = []
    try:
        for block in blocks(document):
            print("".join(f"$ {line}\n" for line in block.text.splitlines()), flush=True)
            if block.stays_open:
                terminals.append(Terminal(block))
                terminals[-1].wait_until_up()
                continue
            ended = subprocess.run(block.command, timeout=BLOCK_TIMEOUT_S, check=False)
            if ended.returncode:
                raise SystemExit(f"This ended with code {ended.returncode}:\n{block.text}")
    finally:
        for terminal in reversed(terminals):
            terminal.interrupt()


def raise_loopback() -> None:
    """A new network namespace has a loopback interface that is down."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        flags = struct.pack("16sH14s", b"lo", _IFF_UP, b"")
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, flags)


def namespace_command() -> list[str]:
    """What starts a command in a network namespace of its own, with the rights to set it up."""
    return ["unshare", "--net"] if os.geteuid() == 0 else ["unshare", "--net", "--map-root-user"]


if __name__ == "__main__":
    # Background processes of a test run ignore it, and so would all that is started here.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    raise_loopback()
    run(Path(sys.argv[1]).read_text())
