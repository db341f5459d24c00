import socket
from pathlib import Path

import pytest

from headwater.zookeeper.ensemble import free_ports, is_free
from headwater.zookeeper.server import ZooKeeperError, ZooKeeperServer
from tests.support.brokers.zookeeper import require_zookeeper
from tests.support.waiting import eventually


def test_a_server_starts_falls_silent_and_ends(tmp_path: Path) -> None:
    [port] = free_ports(1)
    server = ZooKeeperServer(tmp_path / "zk", port=port, program=require_zookeeper())
    assert server.mode() is None
    server.start()
    try:
        assert (server.mode(), server.address) == ("standalone", f"127.0.0.1:{port}")
        assert server.ask("ruok") == "imok"
        server.pause()
        assert server.is_running and server.mode() is None
        server.resume()
        eventually(lambda: server.mode() == "standalone")
        server.stop()
        assert not server.is_running and is_free("127.0.0.1", port)
        # It is silent from the first signal on, but stops all the same.
        server.start()
        server.pause()
        server.stop()
        assert "binding to port" in server.log_tail(1_000)
    finally:
        server.kill()
    with pytest.raises(ZooKeeperError, match="not running"):
        server.stop()


def test_a_server_that_cannot_start_tells_why(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert not is_free("127.0.0.1", port)
        server = ZooKeeperServer(tmp_path, port=port, program=require_zookeeper())
        with pytest.raises(ZooKeeperError, match="Address already in use"):
            server.start()
        assert not server.is_running
