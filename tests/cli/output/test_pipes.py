"""The commands as processes: pipes that are slow, end early or never, signals, and quick starts."""

import array
import fcntl
import os
import pty
import signal
import subprocess
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import IO

import pytest

from tests.support.brokers.clusters import Cluster
from tests.support.command import run_command
from tests.support.waiting import eventually

TIMEOUT_S = 60.0


@contextmanager
def headwater(
    *arguments: str, stdin: int | IO[bytes] = subprocess.PIPE, stderr: int = subprocess.PIPE
) -> Iterator[subprocess.Popen[bytes]]:
    """The command as a child, which is gone afterwards."""
    with subprocess.Popen(
        [sys.executable, "-m", "headwater", *arguments],
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=stderr,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.fixture
def topic(cluster: Cluster) -> str:
    name = cluster.new_name()
    where = ("-b", cluster.bootstrap)
    assert run_command("topics", "create", name, *where).exit_code == 0
    eventually(lambda: run_command("get-offsets", name, *where).exit_code == 0)
    return name


def values(cluster: Cluster, topic: str) -> list[str]:
    """All that the topic's first partition holds."""
    where = ("-b", cluster.bootstrap)
    [end] = run_command("get-offsets", topic, "--partitions", 0, *where).lines
    count = int(end.rpartition(":")[2])
    return run_command("consume", topic, "--from-beginning", "-n", count, *where).lines


def test_a_line_is_written_while_the_pipe_is_open(cluster: Cluster, topic: str) -> None:
    with headwater("produce", topic, "-b", cluster.bootstrap) as process:
        assert process.stdin is not None
        for text, so_far in (
            (b"one\nunfini", ["one"]),
            (b"shed\nlast", ["one", "unfinished"]),
        ):
            process.stdin.write(text)
            process.stdin.flush()
            eventually(partial(_holds, cluster, topic, so_far))
        stdout, stderr = process.communicate(timeout=TIMEOUT_S)
        assert (process.returncode, stdout, stderr) == (0, b"", b"")
    assert values(cluster, topic) == ["one", "unfinished", "last"]


def _holds(cluster: Cluster, topic: str, expected: list[str]) -> bool:
    return values(cluster, topic) == expected


def test_a_file_is_read(
    cluster: Cluster, topic: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("input") / "lines"
    path.write_bytes(b"".join(b"%d\n" % number for number in range(20_000)))
    with (
        path.open("rb") as lines,
        headwater("produce", topic, "-b", cluster.bootstrap, stdin=lines) as process,
    ):
        assert process.communicate(timeout=TIMEOUT_S) == (b"", b"")
        assert process.returncode == 0
    assert values(cluster, topic) == [str(number) for number in range(20_000)]


def test_nothing_to_read_is_nothing_to_write(cluster: Cluster, topic: str) -> None:
    with headwater("produce", topic, "-b", cluster.bootstrap, stdin=subprocess.DEVNULL) as process:
        assert process.communicate(timeout=TIMEOUT_S) == (b"", b"")
        assert process.returncode == 0


def test_an_interrupted_producer_writes_what_it_has_read(cluster: Cluster, topic: str) -> None:
    with headwater("produce", topic, "--timeout", "60000", "-b", cluster.bootstrap) as process:
        assert process.stdin is not None
        process.stdin.write(b"waits for company\n")
        process.stdin.flush()
        # Only once it has read the line would a signal find it there.
        eventually(lambda: _unread_bytes(process.stdin) == 0)
        process.send_signal(signal.SIGINT)
        assert process.wait(TIMEOUT_S) == 130
        assert process.stderr is not None
        assert process.stderr.read() == b""
    assert values(cluster, topic) == ["waits for company"]


def test_a_consumer_ends_cleanly_when_interrupted(cluster: Cluster, topic: str) -> None:
    run_command("produce", topic, "-b", cluster.bootstrap, input=b"one\ntwo\n")
    with headwater("consume", topic, "--from-beginning", "-b", cluster.bootstrap) as process:
        assert process.stdout is not None
        assert [process.stdout.readline() for _ in range(2)] == [b"one\n", b"two\n"]
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=TIMEOUT_S)
        assert (process.returncode, stdout) == (0, b"")
        assert stderr == b"Processed a total of 2 messages\n"


def test_a_reader_that_has_seen_enough_ends_the_consumer_quietly(
    cluster: Cluster, topic: str
) -> None:
    run_command("produce", topic, "-b", cluster.bootstrap, input=b"a line\n" * 100_000)
    with headwater("consume", topic, "--from-beginning", "-b", cluster.bootstrap) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"a line\n"
        process.stdout.close()
        assert process.wait(TIMEOUT_S) == 1
        assert process.stderr is not None
        assert process.stderr.read() == b""


def test_new_records_and_new_partitions_come_as_they_are_written(
    cluster: Cluster, topic: str
) -> None:
    where = ("-b", cluster.bootstrap)
    with headwater("consume", topic, *where) as process:
        stdout = process.stdout
        assert stdout is not None
        os.set_blocking(stdout.fileno(), False)

        def arrives() -> bool:
            # Whatever was written before it had found the end does not count.
            run_command("produce", topic, *where, input=b"news\n")
            return b"news\n" in (stdout.read() or b"")

        eventually(arrives)
        assert run_command("topics", "alter", topic, "-p", 2, *where).exit_code == 0
        new = ("produce", topic, "--partition", 1, *where)
        eventually(lambda: run_command(*new, input=b"from the new one\n").exit_code == 0)
        eventually(lambda: b"from the new one\n" in (stdout.read() or b""))


def test_a_person_at_a_terminal_is_told_how_many(cluster: Cluster, topic: str) -> None:
    parent, child = pty.openpty()
    try:
        with headwater("produce", topic, "-b", cluster.bootstrap, stderr=child) as process:
            process.communicate(b"one\ntwo\n", timeout=TIMEOUT_S)
            assert process.returncode == 0
        assert (
            os.read(parent, 1000).replace(b"\r\n", b"\n")
            == f"Wrote 2 records to {topic}.\n".encode()
        )
    finally:
        os.close(parent)
        os.close(child)


@pytest.mark.parametrize(
    "command",
    ["topics create", "configs describe", "produce", "consume", "get-offsets", "delete-records"],
)
def test_help_teaches_and_loads_no_client(command: str) -> None:
    script = (
        "import sys\n"
        "from headwater.cli.app import main\n"
        f"code = main([*{command.split()!r}, '--help'])\n"
        "heavy = {'headwater.client', 'headwater.wire', 'asyncio', 'kio', 'uvloop'}\n"
        "sys.exit(f'loaded {heavy & set(sys.modules)}' if heavy & set(sys.modules) else code)\n"
    )
    finished = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=60
    )
    assert (finished.returncode, finished.stderr) == (0, "")
    assert "--bootstrap-server" in finished.stdout


@pytest.mark.parametrize(
    "command", ["topics", "configs", "produce", "consume", "get-offsets", "delete-records"]
)
def test_help_has_examples(command: str) -> None:
    assert f"    headwater {command} " in run_command(command, "--help").stdout


def _unread_bytes(stream: IO[bytes] | None) -> int:
    """How much of what was written to a pipe is still in it."""
    assert stream is not None
    count = array.array("i", [0])
    fcntl.ioctl(stream.fileno(), termios.FIONREAD, count)
    return count[0]
