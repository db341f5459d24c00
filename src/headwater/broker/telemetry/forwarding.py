"""Passes pushes on to a receiver of OpenTelemetry's protocol, such as its Collector.

What a client pushes is what `POST /v1/metrics` takes, so it goes on as it came, but decompressed
and with what the broker knows of the client among the attributes of the resource. A thread of its
own sends it: a receiver may take its time. What waits is bounded, and what does not fit or is not
taken is dropped and counted: clients push values since the beginning, so the next push has it all.
"""

from __future__ import annotations

import http.client
import logging
import threading
from collections import deque
from typing import Final

from headwater.net.endpoint import split_url

_logger = logging.getLogger(__name__)

_WAITING_BYTES_MAX: Final = 16 << 20
_TIMEOUT_S: Final = 5.0
_STOP_S: Final = 1.0
_HEADERS: Final = {"Content-Type": "application/x-protobuf"}
_FAULTS: Final = (OSError, http.client.HTTPException)


class OtlpForwarder:
    """From the start of its thread to `close`; its owner is `ClientTelemetry`."""

    def __init__(
        self,
        endpoint: str,
        *,
        waiting_bytes_max: int = _WAITING_BYTES_MAX,
        timeout_s: float = _TIMEOUT_S,
    ) -> None:
        self.endpoint = endpoint
        self._url = split_url(endpoint)
        self.sent_count = 0
        self.failed_count = 0
        self.dropped_count = 0
        self._waiting_bytes_max = waiting_bytes_max
        self._timeout_s = timeout_s
        self._waiting: deque[bytes] = deque()
        self._waiting_bytes = 0
        self._is_closed = False
        self._changed = threading.Condition()
        self._connection: http.client.HTTPConnection | None = None
        self._works = True
        # It holds up nobody who wants to end: what is not sent then is lost with the broker.
        self._thread = threading.Thread(target=self._run, name="telemetry", daemon=True)
        self._thread.start()

    def offer(self, payload: bytes) -> None:
        """Have it sent, if there is room for it."""
        with self._changed:
            if self._waiting_bytes + len(payload) > self._waiting_bytes_max:
                self.dropped_count += 1
                return
            self._waiting.append(payload)
            self._waiting_bytes += len(payload)
            self._changed.notify()

    def close(self) -> None:
        """Send no more."""
        with self._changed:
            self._is_closed = True
            self._changed.notify()
        self._thread.join(_STOP_S)

    # -- in the thread ---------------------------------------------------------------------------

    def _run(self) -> None:
        while (payload := self._next()) is not None:
            try:
                self._post(payload)
            except _FAULTS as error:
                self.failed_count += 1
                self._disconnect()
                if self._works:
                    _logger.warning(
                        "Metrics of clients cannot be passed on to %s: %s", self.endpoint, error
                    )
                self._works = False
            else:
                self.sent_count += 1
                if not self._works:
                    _logger.info("Metrics of clients are passed on to %s again.", self.endpoint)
                self._works = True
        self._disconnect()

    def _next(self) -> bytes | None:
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._is_closed)
            if self._is_closed:
                return None
            payload = self._waiting.popleft()
            self._waiting_bytes -= len(payload)
            return payload

    def _post(self, payload: bytes) -> None:
        is_new = self._connection is None
        connection = self._connection = self._connection or self._connect()
        try:
            connection.request("POST", self._url.path, payload, _HEADERS)
            response = connection.getresponse()
        except ConnectionError:
            if is_new:
                raise
            # The receiver may have closed a connection that nothing was said on for long.
            self._disconnect()
            return self._post(payload)
        response.read()
        if response.status // 100 != 2:
            raise http.client.HTTPException(f"it answers {response.status} {response.reason}")
        return None

    def _connect(self) -> http.client.HTTPConnection:
        is_secure = self._url.is_secure
        make = http.client.HTTPSConnection if is_secure else http.client.HTTPConnection
        return make(self._url.host, self._url.port, timeout=self._timeout_s)

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
