"""AuditStage: counts what passes any place of one's own, for `headwater audit topic` to show.

    with AuditStage(bootstrap_servers="127.0.0.1:9092", stage="billing-db") as stage:
        for record in consumer:
            write(record)
            stage.count(record)

Counting adds to numbers in memory and never waits. Once a bucket of time is over, and when it is
closed, a thread writes the counts to the topic `__audit_stages`, which is made if it is not there.
What cannot be written is kept and tried again, under the same names, so nothing is counted twice.
A crash loses the counts of the last bucket, and with `flush()` only what came after that.
"""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections.abc import Mapping
from secrets import token_hex
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Protocol, Self, Unpack

from headwater.base.audit_id import audit_id_of
from headwater.base.errors import KafkaError
from headwater.client.errors import ClientClosedError
from headwater.client.producer.producer import Producer
from headwater.client.settings.admin_settings import ADMIN_SETTINGS
from headwater.client.settings.typed import ProducerSettings
from headwater.delivery.audit.stage_counts import StageCounts
from headwater.delivery.audit.stage_rows import (
    STAGE_TIER,
    STAGES_TOPIC,
    StageRecord,
    encode_stage_row,
)
from headwater.delivery.audit.stage_topic import ensure_stages_topic

if TYPE_CHECKING:
    from headwater.client.consumer.record import ConsumerRecord
    from headwater.client.producer.batches.audit_numbers import EndedBatch

_logger = logging.getLogger("headwater.delivery")

#: As brokers have it by default.
BUCKET_MS: Final = 60_000
#: So many rows may wait to be written; what comes then stays in the counters.
_WAITING_ROWS_MAX: Final = 20_000


class CountedRecord(Protocol):
    """What consumers give, ours and others'."""

    @property
    def topic(self) -> str: ...
    @property
    def partition(self) -> int: ...
    @property
    def timestamp(self) -> int: ...
    @property
    def key(self) -> Any: ...
    @property
    def value(self) -> Any: ...
    @property
    def headers(self) -> Any: ...


class StageInterceptor:
    """Counts in a client's stead. Clients close their interceptors, and the stage has its own."""

    def __init__(self, stage: AuditStage) -> None:
        self._stage = stage

    def on_consume(self, records: list[ConsumerRecord]) -> list[ConsumerRecord]:
        for record in records:
            self._stage.count(record)
        return records

    def on_batch_ended(self, ended: EndedBatch) -> None:
        self._stage.batch_ended(ended)


class AuditStage:
    """Used from any thread. Settings are those of a producer, with Kafka's names."""

    def __init__(
        self,
        config: Mapping[str, object] | None = None,
        *,
        stage: str,
        tier: str = STAGE_TIER,
        bucket_ms: int = BUCKET_MS,
        topic: str = STAGES_TOPIC,
        **settings: Unpack[ProducerSettings],
    ) -> None:
        if not stage or not isinstance(stage, str):
            raise ValueError(f"A stage cannot be called {stage!r}: give it a name.")
        if type(bucket_ms) is not int or bucket_ms <= 0:
            raise ValueError(f"bucket_ms cannot be {bucket_ms!r}: it must be a positive number.")
        self._topic = topic
        self._bucket_ms = bucket_ms
        self._producer = Producer(config, **settings)
        given = {
            **(config or {}),
            **{name.replace("_", "."): value for name, value in settings.items()},
        }
        self._admin_config = {
            name: value for name, value in given.items() if name in ADMIN_SETTINGS
        }
        self._names = {
            "tier": tier,
            "stage": stage,
            "host": socket.gethostname(),
            "process": token_hex(8),
        }
        self._sequence = 0
        self._lock = threading.Lock()
        self._counts = StageCounts(bucket_ms)
        #: One at a time writes.
        self._publishing = threading.Lock()
        self._waiting: list[StageRecord] = []
        self._has_topic = False
        self._trouble = ""
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"audit-{stage}", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    # -- counting --------------------------------------------------------------------------------

    def count(self, record: CountedRecord) -> None:
        """A record has passed. Its time is that of its audit id, if it has one."""
        audit_id = audit_id_of(record.headers or ())
        self.add(
            record.topic,
            record.partition,
            record.timestamp if audit_id is None else audit_id.time_ms,
            size_bytes=_size(record.key) + _size(record.value),
        )

    def add(
        self,
        topic: str,
        partition: int,
        timestamp_ms: int,
        count: int = 1,
        size_bytes: int = 0,
    ) -> None:
        """So many records of that time have passed."""
        self._add(topic, partition, timestamp_ms, count, size_bytes)

    def _add(
        self,
        topic: str,
        partition: int,
        timestamp_ms: int,
        count: int,
        size_bytes: int,
        given_up_count: int = 0,
    ) -> None:
        now_ms = time.time_ns() // 1_000_000
        with self._lock:
            if self._end.is_set():
                raise ClientClosedError("The audit stage is closed.")
            self._counts.add(
                topic, partition, timestamp_ms, count, size_bytes, now_ms, given_up_count
            )

    def batch_ended(self, ended: EndedBatch) -> None:
        """A producer's batch was acknowledged, or given up."""
        self._add(*ended.topic_partition, *ended[1:3], ended.size_bytes, ended.given_up_count)

    @property
    def interceptor(self) -> StageInterceptor:
        """For a consumer, to count what is delivered, or for a producer that gives ids."""
        return StageInterceptor(self)

    # -- publishing ------------------------------------------------------------------------------

    def flush(self, timeout_s: float | None = None) -> None:
        """Write what is counted, and wait for it; raises `KafkaError`, and keeps what is left."""
        with self._publishing:
            self._publish(timeout_s)

    def close(self, timeout_s: float | None = 30.0) -> None:
        """Write what is counted, and end; what cannot be written is told in the log."""
        with self._lock:
            if self._end.is_set():
                return
            self._end.set()
        self._thread.join(timeout_s)
        try:
            self.flush(timeout_s)
        except KafkaError as error:
            _logger.warning(
                "The audit stage %s lost %d rows of counts at its end: %s",
                self._names["stage"],
                len(self._waiting),
                error,
            )
        finally:
            self._producer.close(timeout_s)

    def _run(self) -> None:
        """Publish when a bucket is over."""
        interval_s = self._bucket_ms / 1000
        while not self._end.wait(interval_s - time.time() % interval_s):
            try:
                self.flush(interval_s)
            except KafkaError as error:
                if str(error) != self._trouble:
                    self._trouble = str(error)
                    _logger.warning("An audit stage cannot be published just now: %s", error)
            else:
                self._trouble = ""

    def _publish(self, timeout_s: float | None) -> None:
        self._take()
        if not self._waiting:
            return
        if not self._has_topic:
            ensure_stages_topic(self._admin_config, self._topic)
            self._has_topic = True
        futures = [self._producer.send(self._topic, value, key=key) for key, value in self._waiting]
        self._producer.flush(timeout_s)
        failures = [
            (record, error)
            for record, future in zip(self._waiting, futures, strict=True)
            if (error := future.exception(timeout_s)) is not None
        ]
        # Some may be written all the same: they are sent again under the name that they have.
        self._waiting = [record for record, _ in failures]
        if failures:
            raise failures[0][1]

    def _take(self) -> None:
        if len(self._waiting) >= _WAITING_ROWS_MAX:
            return
        with self._lock:
            if not len(self._counts):
                return
            self._sequence += 1
            names = {
                **self._names,
                "sequence": self._sequence,
                "time": time.time_ns() // 1_000_000,
            }
            rows = self._counts.take(names)
        self._waiting += map(encode_stage_row, rows)


def _size(content: object) -> int:
    return len(content) if isinstance(content, bytes | bytearray | memoryview | str) else 0
