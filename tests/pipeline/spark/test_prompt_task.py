from __future__ import annotations

import os
import pickle
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark import TaskContext

from headwater.pipeline.spark import prompt_task
from headwater.pipeline.spark.prompt_task import PromptTask, acknowledge_at_once

#: Where Linux tells in its `tcp_info` how many segments wait to be acknowledged.
_UNACKNOWLEDGED_AT = 24
#: The kernel acknowledges by itself after 40 ms, which a slow machine may take between two lines.
_ATTEMPTS = 50

quick = pytest.mark.skipif(not hasattr(socket, "TCP_QUICKACK"), reason="only Linux can do it")


class _Task(PromptTask):
    def __init__(self, name: str) -> None:
        self.name = name


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        sender = socket.create_connection(server.getsockname())
        receiver, _ = server.accept()
        with sender, receiver:
            yield sender, receiver


@quick
def test_what_was_sent_is_acknowledged_before_anything_answers(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    sender, receiver = pair
    for _ in range(_ATTEMPTS):
        receiver.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 0)
        sender.sendall(b"code")
        assert receiver.recv(4) == b"code"
        if _unacknowledged(sender) == 1:
            break
    else:
        pytest.fail("the kernel acknowledges at once by itself, so nothing is shown")
    acknowledge_at_once()
    assert _unacknowledged(sender) == 0


@quick
def test_files_and_sockets_of_all_kinds_stay_open_and_no_other_is_left(
    tmp_path: Path, pair: tuple[socket.socket, socket.socket]
) -> None:
    sender, receiver = pair
    left, right = socket.socketpair()
    with left, right, (tmp_path / "file").open("w") as file:
        before = os.listdir("/proc/self/fd")
        acknowledge_at_once()
        assert len(os.listdir("/proc/self/fd")) == len(before)
        file.write("still open")
        for one, other in ((sender, receiver), (left, right)):
            one.sendall(b"x")
            assert other.recv(1) == b"x"


@quick
def test_a_default_time_limit_is_not_forced_on_sockets_that_others_opened(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    _, receiver = pair
    socket.setdefaulttimeout(5)
    try:
        acknowledge_at_once()
    finally:
        socket.setdefaulttimeout(None)
    assert os.get_blocking(receiver.fileno())


def test_only_a_task_looks_for_its_socket(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    monkeypatch.setattr(prompt_task, "acknowledge_at_once", lambda: calls.append("asked"))
    pickled = pickle.dumps(_Task("orders"))
    assert pickle.loads(pickled).name == "orders"
    assert calls == []
    monkeypatch.setattr(TaskContext, "_taskContext", object())
    assert pickle.loads(pickled).name == "orders"
    assert calls == ["asked"]


def _unacknowledged(sender: socket.socket) -> int:
    information = sender.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104)
    count: int = struct.unpack_from("I", information, _UNACKNOWLEDGED_AT)[0]
    return count
