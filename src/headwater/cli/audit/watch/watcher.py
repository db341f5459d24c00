"""Looks at the books of topics again and again, and tells which rules begin and cease to fire.

A round that fails, say because a broker is away, changes nothing: what fired fires on, and the
failure is counted and said.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections import deque
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Final, NamedTuple

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.printable import printable
from headwater.broker.metrics.exposition import counter, gauge, labels
from headwater.cli.audit.metrics_page import metrics_page
from headwater.cli.audit.watch.alarms import BEGIN, AlarmBoard, AlarmEvent
from headwater.cli.audit.watch.books import Books
from headwater.cli.audit.watch.rules import Rule, read_book_by
from headwater.cli.output.colour import Tone, painted
from headwater.client.admin import NewTopic, TopicOperations
from headwater.client.connection.cluster_connection import ClusterConnection
from headwater.client.consumer.async_consumer import AsyncConsumer
from headwater.client.producer.async_producer import AsyncProducer

#: So many events wait for the topic of alarms while it cannot be written; the oldest go first.
_WAITING_MAX: Final = 1_000


class WatchOptions(NamedTuple):
    topics: Sequence[str]
    rules: dict[str, Rule]
    every_s: float
    last_ms: int
    buffer_ms: int
    #: The topic that events go to.
    to_topic: str | None
    address: tuple[str, int] | None
    as_json: bool
    is_once: bool


class Watcher:
    def __init__(self, connection: ClusterConnection, servers: str, options: WatchOptions) -> None:
        self._connection = connection
        self._servers = servers
        self._options = options
        self._trouble = ""
        self._unsent: deque[AlarmEvent] = deque(maxlen=_WAITING_MAX)
        self.board = AlarmBoard()
        self.round_count = 0
        self.failed_count = 0
        self._dropped_rows = 0

    async def run(self) -> None:
        """Until it is cancelled; once only, if that was asked for. Then a failure is raised."""
        options = self._options
        async with (
            AsyncConsumer(
                bootstrap_servers=self._servers,
                enable_auto_commit=False,
                auto_offset_reset="earliest",
            ) as consumer,
            AsyncProducer(bootstrap_servers=self._servers) as producer,
            metrics_page(options.address, self.metric_pieces),
        ):
            books = Books(self._connection, consumer, options.topics, options.last_ms)
            if options.to_topic is not None:
                await self._create(options.to_topic)
            while True:
                try:
                    await self.look(books)
                    await self._send(producer)
                except KafkaError as error:
                    if options.is_once:
                        raise
                    self.failed_count += 1
                    self._say(error)
                if options.is_once:
                    return
                await asyncio.sleep(options.every_s)

    async def look(self, books: Books) -> None:
        """One round over all topics."""
        now_ms = time.time_ns() // 1_000_000
        options = self._options
        readings = [
            reading
            for book in await books.read(now_ms)
            for reading in read_book_by(options.rules, book, now_ms, options.buffer_ms)
        ]
        self._dropped_rows = books.dropped_rows
        for event in self.board.update(readings, now_ms):
            self._show(event)
            self._unsent.append(event)
        self.round_count += 1
        self._trouble = ""

    # -- telling ---------------------------------------------------------------------------------

    def _show(self, event: AlarmEvent) -> None:
        if self._options.as_json:
            print(json.dumps(event.to_json(), ensure_ascii=False), flush=True)
            return
        when = f"{datetime.fromtimestamp(event.time_ms / 1000, UTC):%Y-%m-%dT%H:%M:%SZ}"
        begins = event.kind == BEGIN
        word = painted("BEGINS" if begins else "ENDS  ", Tone.BAD if begins else Tone.GOOD)
        print(f"{when}  {word}  {printable(event.sentence)}", flush=True)

    async def _create(self, topic: str) -> None:
        operations = TopicOperations(self._connection)
        outcome = (await operations.create_topics([NewTopic(topic, 1)], raise_errors=False))[topic]
        if isinstance(outcome, KafkaError) and outcome.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
            raise outcome

    async def _send(self, producer: AsyncProducer) -> None:
        """In their order; what cannot be written now is written with the next round."""
        while self._unsent and self._options.to_topic is not None:
            event = self._unsent[0]
            value = json.dumps(event.to_json(), ensure_ascii=False).encode()
            key = json.dumps(event.reading.place).encode()
            await producer.send_and_wait(self._options.to_topic, value, key)
            if self._unsent and self._unsent[0] is event:
                self._unsent.popleft()

    def _say(self, error: KafkaError) -> None:
        if str(error) != self._trouble:
            self._trouble = str(error)
            print(f"headwater: {printable(str(error))}", file=sys.stderr, flush=True)

    def metric_pieces(self) -> Iterator[str]:
        readings = self.board.readings
        names = {place: labels(place._asdict()) for place in readings}
        yield from gauge(
            "headwater_audit_watch_value",
            "What a rule found in the last round: records, a share, or milliseconds.",
            [(names[place], each.value) for place, each in readings.items()],
        )
        yield from gauge(
            "headwater_audit_watch_firing",
            "1 where a rule fires.",
            [(names[place], int(each.fires)) for place, each in readings.items()],
        )
        yield from counter(
            "headwater_audit_watch_rounds_total", "Rounds of looking.", [("", self.round_count)]
        )
        yield from counter(
            "headwater_audit_watch_failures_total", "Rounds that failed.", [("", self.failed_count)]
        )
        yield from counter(
            "headwater_audit_watch_dropped_rows_total",
            "Rows that were too many to keep.",
            [("", self._dropped_rows)],
        )
