"""A broker in a process of its own that is attacked while a polite client uses it.

    with attacked_broker(tmp_path) as broker:
        ...  # hundreds of sockets that do what no client would

The polite client works in a thread: round after round it asks over a new connection and over its
old one, writes a record and reads it back. At the end of the block it must have been answered every
time, within `answer_s_max`, and the broker must have stayed within `resident_bytes_max` and must
have logged no traceback. Whatever the attack took must come back, which a test checks by
`settled`: no connection is left but those of the client.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from headwater.testing.broker_process import HOST, BrokerProcess, answers, free_port, wait_until
from headwater.wire.messages.fetch import FetchRequest
from headwater.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from headwater.wire.records import Record, encode_batch
from tests.support.metric_figures import figure, read
from tests.support.other_clients.raw import RawConnection, fetch_topic, produce_request

MEBIBYTE: Final = 1 << 20
ANSWER_S_MAX: Final = 2.0
RESIDENT_BYTES_MAX: Final = 200 * MEBIBYTE
TOPIC: Final = "polite"
PRODUCE_VERSION: Final = 9
FETCH_VERSION: Final = 12
METADATA_VERSION: Final = 9
_PAUSE_S: Final = 0.01


class AttackedBroker(BrokerProcess):
    """A broker with its metrics, and what its polite client has seen."""

    def __init__(
        self,
        directory: Path,
        *,
        settings: Mapping[str, str] | None = None,
        command_prefix: Sequence[str] = (),
        dials: bool = True,
    ) -> None:
        self._dials = dials
        self.metrics_port = free_port()
        every = {"metrics.listen": f"{HOST}:{self.metrics_port}", **(settings or {})}
        super().__init__(directory, settings=every, command_prefix=command_prefix)
        self._sockets: list[socket.socket] = []
        self.rounds = 0
        self.slowest_answer_s = 0.0
        self.resident_bytes_max = 0
        self.trouble: BaseException | None = None

    def open_sockets(
        self, count: int, *, port: int | None = None, buffer_bytes: int = 0
    ) -> list[socket.socket]:
        """Connections that nobody has said anything on; with buffers of that size if it is set."""
        opened = [socket.socket() for _ in range(count)]
        self._sockets += opened
        for each in opened:
            if buffer_bytes:
                each.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer_bytes)
                each.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, buffer_bytes)
            each.settimeout(10)
            each.connect((HOST, port or self.port))
        return opened

    def close_sockets(self) -> None:
        """The attack is over."""
        for each in self._sockets:
            each.close()
        self._sockets.clear()

    def figure(self, name: str, **labels: str) -> float:
        """One of its metrics."""
        return figure(read([self.metrics_page()]), name, **labels)

    def metrics_page(self) -> str:
        address = f"http://{HOST}:{self.metrics_port}/metrics"
        with urllib.request.urlopen(address, timeout=10) as page:
            text: str = page.read().decode()
        return text

    def settled(self, connections_max: int = 1) -> bool:
        """Whether all is given back: connections are closed, and no request is in memory."""
        figures = read([self.metrics_page()])
        return (
            figure(figures, "headwater_connections") <= connections_max
            and figure(figures, "headwater_queued_request_bytes") == 0
        )

    def wait_rounds(self, count: int = 5) -> None:
        """Return when the polite client has been answered so many times more."""
        wanted = self.rounds + count
        wait_until(lambda: self.rounds >= wanted or self.trouble is not None, "polite rounds")

    # -- the polite client, in its thread --------------------------------------------------------

    def be_polite(self, done: threading.Event) -> None:
        try:
            with RawConnection(self.bootstrap) as connection:
                while not done.is_set():
                    self._round(connection)
                    self.rounds += 1
                    self.resident_bytes_max = max(self.resident_bytes_max, self.resident_bytes())
                    # A client, not one more attack.
                    time.sleep(_PAUSE_S)
        except Exception as error:
            self.trouble = error

    def _round(self, connection: RawConnection) -> None:
        if self._dials:
            with self._timed():
                assert answers(self.port), "a new connection is not answered"
        value = b"round %d" % self.rounds
        batch = encode_batch([Record(0, int(time.time() * 1000), None, value)])
        with self._timed():
            answer = connection.ask(produce_request(TOPIC, batch), PRODUCE_VERSION)
            [produced] = answer.responses[0].partition_responses
            assert produced.error_code == 0, f"producing failed with {produced.error_code}"
        with self._timed():
            asked = FetchRequest(topics=[fetch_topic(TOPIC, produced.base_offset)])
            [fetched] = connection.ask(asked, FETCH_VERSION).responses[0].partitions
            assert fetched.error_code == 0, f"fetching failed with {fetched.error_code}"
            assert value in bytes(fetched.records), "what was written is not read back"

    @contextlib.contextmanager
    def _timed(self) -> Iterator[None]:
        began_s = time.monotonic()
        yield
        self.slowest_answer_s = max(self.slowest_answer_s, time.monotonic() - began_s)


@contextlib.contextmanager
def attacked_broker(
    directory: Path,
    *,
    settings: Mapping[str, str] | None = None,
    command_prefix: Sequence[str] = (),
    dials: bool = True,
    answer_s_max: float = ANSWER_S_MAX,
    resident_bytes_max: int = RESIDENT_BYTES_MAX,
) -> Iterator[AttackedBroker]:
    """See the module's text; `command_prefix` is as for `BrokerProcess`.

    With `dials=False` the polite client stays on its one connection.
    """
    attacked = AttackedBroker(
        directory, settings=settings, command_prefix=command_prefix, dials=dials
    )
    with attacked as broker:
        with RawConnection(broker.bootstrap) as connection:
            topics = MetadataRequest(topics=[MetadataRequestTopic(name=TOPIC)])
            connection.ask(topics, METADATA_VERSION)
        done = threading.Event()
        client = threading.Thread(target=broker.be_polite, args=(done,), daemon=True)
        client.start()
        try:
            broker.wait_rounds()
            yield broker
            broker.wait_rounds()
        finally:
            done.set()
            client.join()
            broker.close_sockets()
        if broker.trouble is not None:
            raise AssertionError(f"The polite client failed:\n{broker.tail()}") from broker.trouble
        assert broker.slowest_answer_s <= answer_s_max, "the polite client had to wait"
        assert broker.resident_bytes_max <= resident_bytes_max, "the broker took much memory"
        assert "Traceback" not in broker.output.read_text(errors="replace"), broker.tail()


def claim(size: int) -> bytes:
    """The beginning of a request of that size, as far as a peer has to send it to claim it."""
    return struct.pack(">i", size)
