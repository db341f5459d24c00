"""From nothing to the first acknowledged record, and the memory of a server that idles.

The clock starts before the process is made. The one who waits for it is already there: a bare
client that tries to connect every other millisecond, sends one record to a topic that exists, and
does so again until it is acknowledged.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time

from bench.broker.process_usage import resident_bytes
from bench.broker.raw_client import RawClient, read_answer
from bench.broker.request_load import produce_frame
from bench.broker.results import MEMORY, START, Row
from bench.broker.run import Run, take_turns
from bench.broker.servers import Server
from bench.broker.sizes import MEGABYTE
from bench.rounds import Comparison
from headwater.wire.api_keys import ApiKey

START_SECTION = "Start"
MEMORY_SECTION = "Idle memory"
_TOPIC = "first"
_POLL_S = 0.002
_TIMEOUT_S = 300.0
_SETTLE_S = 2.0


def measure(run: Run) -> None:
    run.attempt("Start and idle memory", lambda: _measure(run))


def _measure(run: Run) -> None:
    idle: dict[int, list[float]] = {}

    def start_and_look(server: Server) -> float:
        seconds = start_to_first_ack_s(server, _TOPIC)
        time.sleep(_SETTLE_S if run.sizes.start_rounds > 1 else 0)
        idle.setdefault(id(server), []).append(resident_bytes(server.pid) / MEGABYTE)
        server.stop()
        return seconds

    with run.pair.made() as servers:
        for server in servers:
            server.start()
            with server.connect() as client:
                client.create_topic(_TOPIC, 1)
            server.stop()
        ours, peer = take_turns(servers, run.sizes.start_rounds, start_and_look)
        rows = run.results.rows
        what = "Process start to first acknowledged record"
        rows.append(Row(START_SECTION, what, "s", Comparison(ours, peer), START))
        memory = Comparison(idle[id(servers[0])], idle[id(servers[1])])
        what = "Resident memory after start, with a topic"
        rows.append(Row(MEMORY_SECTION, what, "MB", memory, MEMORY))


def start_to_first_ack_s(server: Server, topic: str) -> float:
    """Start the server; the time until a record for the topic's partition 0 is acknowledged."""
    frame = produce_frame(topic, 0, 100, 1)
    acknowledged_s: list[float] = []
    given_up = threading.Event()

    def wait_for_acknowledgement() -> None:
        deadline = time.perf_counter() + _TIMEOUT_S
        while not given_up.is_set() and time.perf_counter() < deadline:
            with contextlib.suppress(OSError, socket.timeout):
                if _is_acknowledged(server.port, frame):
                    acknowledged_s.append(time.perf_counter())
                    return
            time.sleep(_POLL_S)

    waiter = threading.Thread(target=wait_for_acknowledgement, name="first-ack")
    start_s = time.perf_counter()
    waiter.start()
    try:
        server.start()
        waiter.join()
    finally:
        given_up.set()
        waiter.join()
    if not acknowledged_s:
        raise RuntimeError(f"{server.name} acknowledged nothing within {_TIMEOUT_S:g} s")
    return acknowledged_s[0] - start_s


def _is_acknowledged(port: int, frame: bytes) -> bool:
    with RawClient(port, timeout_s=10.0) as client:
        answer = read_answer(client.ask_bytes(frame), ApiKey.PRODUCE)
    return bool(answer.responses[0].partition_responses[0].error_code == 0)
