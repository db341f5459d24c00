import asyncio
import socket
from collections.abc import Iterator

import pytest

from headwater.cluster.store.zookeeper.handler import LoopHandler

SESSION_TIMEOUT_S = 6.0


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    loop = asyncio.new_event_loop()
    yield loop
    loop.close()


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


def test_what_is_posted_is_called_in_order(loop: asyncio.AbstractEventLoop) -> None:
    handler = LoopHandler(loop, 1, SESSION_TIMEOUT_S)
    order: list[object] = []
    early = handler.async_result()
    late = handler.async_result()
    # The answer is there before anybody has linked, and keeps its place all the same.
    early.set("early")
    handler.post(lambda: order.append("event"))
    late.set_exception(ValueError("late"))
    late.set("reported twice")
    early.rawlink(lambda result: order.append(result.get()))
    late.rawlink(lambda result: order.append(str(result.exception)))
    loop.call_soon(loop.stop)
    loop.run_forever()
    assert order == ["early", "event", "late"]
    assert early.ready() and late.ready()
    with pytest.raises(ValueError, match="late"):
        late.get()


def test_on_a_closed_loop_nobody_is_told() -> None:
    loop = asyncio.new_event_loop()
    handler = LoopHandler(loop, 1, SESSION_TIMEOUT_S)
    loop.close()
    handler.async_result().set("unheard")


def test_the_server_that_fell_silent_is_not_the_next_to_be_tried(
    loop: asyncio.AbstractEventLoop, listener: socket.socket
) -> None:
    address = listener.getsockname()
    handler = LoopHandler(loop, 2, SESSION_TIMEOUT_S)
    handler.create_connection(address=address).close()
    handler.avoid_last()
    with pytest.raises(ConnectionAbortedError):
        handler.create_connection(address=address)
    # Only once: it may be the only one that is left.
    handler.create_connection(address=address).close()


def test_the_only_server_is_tried_again(
    loop: asyncio.AbstractEventLoop, listener: socket.socket
) -> None:
    handler = LoopHandler(loop, 1, SESSION_TIMEOUT_S)
    handler.create_connection(address=listener.getsockname()).close()
    handler.avoid_last()
    handler.create_connection(address=listener.getsockname()).close()


def test_waiting_for_sockets(loop: asyncio.AbstractEventLoop) -> None:
    handler = LoopHandler(loop, 1, SESSION_TIMEOUT_S)
    one, other = socket.socketpair()
    with one, other:
        assert handler.select([one], [], [], 0.0) == ([], [], [])
        assert handler.select([one], [other], [], 5.0) == ([], [other], [])
        other.send(b"x")
        assert handler.select([one, other], [], [], 5.0) == ([one], [], [])
        other.close()
        assert handler.select([one], [], [], None) == ([one], [], [])
