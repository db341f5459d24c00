"""The sink's tasks and drivers as processes that are killed at random, on a real broker.

It is what Spark does, without Spark, and so hundreds of times as fast: for each batch a process for
each task, then one that commits. One seed says who is killed and after how long, and when the
broker is. A task that was killed is tried again; where a commit was killed, the query starts again,
with a new run and the same batch.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import uuid
from collections import Counter
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pyarrow

from headwater.base.errors import KafkaError
from headwater.client.admin import Admin
from headwater.pipeline.connector.option_table import Mode
from headwater.pipeline.sink.exactly_once.driver_shell import commit_batch
from headwater.pipeline.sink.exactly_once.task_name import QueryName
from headwater.pipeline.sink.exactly_once.task_shell import TaskDone, TaskPlace, write_task
from headwater.pipeline.sink.sink_options import SinkSettings, parse_sink_settings
from tests.support.brokers.serve_process import ServeProcess
from tests.support.values.whole_topic import create_topic, read_topic

#: Its children are forked from a process without threads, and need not import anything.
CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["tests.support.spark.sink_campaign"])

ROWS_PER_TASK = 3
KILL_CHANCE = 0.35
#: A task or a commit takes some tens of milliseconds; most kills should find it at work.
KILL_WITHIN_S = 0.15
TIMEOUT_S = 120.0
#: A decision whose driver was killed is undone by the broker when it looks for such.
_LOOK_OFTEN = "transaction.abort.timed.out.transaction.cleanup.interval.ms=200"


class SinkCampaign:
    """One broker, and one query after the other."""

    def __init__(self, directory: Path, seed: int) -> None:
        self.generator = random.Random(seed)
        self._directory = directory
        self._broker = self._serve("127.0.0.1:0")
        self.killed: Counter[str] = Counter()

    def close(self) -> None:
        self._broker.stop()

    def play_query(self, batch_count: int = 3, task_count: int = 2) -> None:
        """A query with trouble; raises if its output is not what it should be."""
        topic = create_topic(self._broker.address, f"out-{uuid.UUID(int=self._bits())}")
        query = QueryName(str(uuid.UUID(int=self._bits())))
        run = self._new_run()
        batch = 0
        while batch < batch_count:
            settings = self._settings(topic)
            done: list[TaskDone] = []
            for partition in range(task_count):
                done.append(self._task(TaskPlace(query, run, batch, partition, 0), settings))
            if self._process("commit", commit_batch, batch, settings, done) == "done":
                batch += 1
            else:
                run = self._new_run()
        self._check(topic, query, batch_count, task_count)

    def _task(self, place: TaskPlace, settings: SinkSettings) -> TaskDone:
        """One attempt after the other until one comes to its end."""
        while True:
            answer = self._process("task", _write, place, settings)
            if isinstance(answer, TaskDone):
                return answer
            place = TaskPlace(
                place.query, place.run, place.batch, place.partition, place.attempt + 1
            )

    def _process(self, kind: str, function: Callable[..., Any], *arguments: Any) -> Any:
        """What the function returns in a process of its own; None if it was killed or failed."""
        receiving, sending = CONTEXT.Pipe(duplex=False)
        process = CONTEXT.Process(target=_answer, args=(sending, function, arguments))
        process.start()
        sending.close()
        wait_s = TIMEOUT_S
        is_doomed = self.generator.random() < KILL_CHANCE
        if is_doomed:
            wait_s = self.generator.uniform(0, KILL_WITHIN_S)
        try:
            if not receiving.poll(wait_s):
                assert is_doomed, f"a {kind} takes too long"
                self._kill(kind, process.pid or 0)
                if not receiving.poll(TIMEOUT_S):
                    raise AssertionError(f"a {kind} goes on for too long")
            return receiving.recv()
        except EOFError:
            return None
        finally:
            process.join()
            receiving.close()

    def _kill(self, kind: str, process_id: int) -> None:
        if self.generator.random() < 0.2:
            self.killed["broker"] += 1
            self._broker.stop(signal.SIGKILL)
            self._broker = self._serve(self._broker.address)
        else:
            self.killed[kind] += 1
            os.kill(process_id, signal.SIGKILL)

    def _check(self, topic: str, query: QueryName, batch_count: int, task_count: int) -> None:
        seen = read_topic(self._broker.address, topic)
        found = Counter(value for values in seen.values() for value in values)
        places = [(batch, task) for batch in range(batch_count) for task in range(task_count)]
        expected = Counter(row for batch, task in places for row in _rows(batch, task))
        assert found == expected, f"of {query.text}: {found - expected} and not {expected - found}"
        with Admin(bootstrap_servers=self._broker.address) as admin:
            assert admin.open_transactions(query.task_pattern) == {}

    def _settings(self, topic: str) -> SinkSettings:
        options = {
            "kafka.bootstrap.servers": self._broker.address,
            "topic": topic,
            "headwater.exactlyOnce": "true",
        }
        return parse_sink_settings(options, Mode.STREAM)

    def _serve(self, listen: str) -> ServeProcess:
        broker = ServeProcess(
            "--listen", listen, "--data-dir", str(self._directory), "--set", _LOOK_OFTEN
        )
        broker.wait_ready()
        return broker

    def _new_run(self) -> str:
        return str(uuid.UUID(int=self._bits()))

    def _bits(self) -> int:
        return self.generator.getrandbits(128)


def _rows(batch: int, partition: int) -> list[bytes]:
    return [b"%d.%d.%d" % (batch, partition, row) for row in range(ROWS_PER_TASK)]


def _write(place: TaskPlace, settings: SinkSettings) -> TaskDone:
    rows = pyarrow.record_batch({"value": _rows(place.batch, place.partition)})
    return write_task(place, settings, iter([rows]))


def _answer(sending: Connection, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    """In the child: nothing but the answer, or silence where something went wrong."""
    try:
        result = function(*arguments)
    except KafkaError:
        return
    sending.send("done" if result is None else result)
