"""What the quick tier takes and what it leaves to the others."""

import socket

import pytest

from tests.support.quick_tier import TESTS, SocketGuard, is_left_out


@pytest.mark.parametrize(
    "name",
    [
        "broker/handlers/test_produce.py",  # Through a module of tests/support.
        "compat/clients/test_java_tools.py",
        "net/test_listener.py",  # Itself.
        "sim",
    ],
)
def test_what_needs_more_than_the_process_or_much_time_is_left_out(name: str) -> None:
    assert (TESTS / name).exists()
    assert is_left_out(TESTS / name)


@pytest.mark.parametrize(
    "name",
    ["storage/test_partition_log.py", "coordinator/group", "support", "net/test_connection.py"],
)
def test_the_rest_is_run(name: str) -> None:
    assert (TESTS / name).exists()
    assert not is_left_out(TESTS / name)


def test_a_socket_is_refused() -> None:
    with SocketGuard(socket.AF_INET) as guarded, pytest.raises(pytest.fail.Exception):
        guarded.bind(("127.0.0.1", 0))
