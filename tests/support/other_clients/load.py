"""A confluent-kafka producer that never rests, on a thread, and remembers what was acknowledged."""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Any, Self

from tests.support.other_clients.contract import require_package

#: How many records may wait for their acknowledgement.
IN_FLIGHT_MAX = 50


class SteadyProducer:
    """Sends numbered records to one partition until it is left; then waits for all of them.

    A value is the producer's name, the number, and padding of a size that varies.
    """

    def __init__(
        self, bootstrap: str, topic: str, partition: int, name: str, **settings: Any
    ) -> None:
        confluent = require_package("confluent_kafka", "confluent-kafka")
        self.partition = partition
        #: Offsets of the records that were acknowledged, by number.
        self.acknowledged: dict[int, int] = {}
        #: What librdkafka gave up on, which happens to no record that it may retry.
        self.errors: list[str] = []
        self.sent_count = 0
        self._topic = topic
        self._name = name
        self._producer = confluent.Producer(
            {
                "bootstrap.servers": bootstrap,
                "log_level": 0,
                "linger.ms": 1,
                "reconnect.backoff.ms": 10,
                "reconnect.backoff.max.ms": 100,
                "retry.backoff.ms": 20,
                "message.timeout.ms": 60_000,
            }
            | {each.replace("_", "."): value for each, value in settings.items()}
        )
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"producer-{name}")

    def value(self, number: int) -> bytes:
        return f"{self._name}-{number}-".encode() + b"." * (number * 37 % 900)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._thread.join()
        assert self._producer.flush(60) == 0

    def _run(self) -> None:
        while not self._stop.is_set():
            if len(self._producer) < IN_FLIGHT_MAX:
                number = self.sent_count
                self.sent_count += 1
                self._producer.produce(
                    self._topic,
                    value=self.value(number),
                    partition=self.partition,
                    on_delivery=lambda error, event, number=number: self._note(
                        number, error, event
                    ),
                )
                self._producer.poll(0)
            else:
                self._producer.poll(0.01)

    def _note(self, number: int, error: Any, event: Any) -> None:
        if error is None:
            self.acknowledged[number] = event.offset()
        else:
            self.errors.append(error.str())
