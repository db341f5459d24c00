"""Runs all clients of a case against one broker, in turns, and checks what the broker has."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from bench.bench_run import BenchRun
from bench.broker.client_run import ClientRun, observe
from bench.broker.filled_topic import FilledTopic, filled_topic
from bench.broker.run import settle_disk
from bench.broker.servers import Server
from bench.client.cases import PRODUCE, Case, Sizes
from bench.client.contenders import Contender
from bench.client.job import run_client
from bench.client.load import Load
from bench.client.results import CaseResults, ClientFigures, ClientResults
from bench.machine import touch_memory

PARTITION_COUNT = 6
_KEY_SIZE_BYTES = 10

_topic_numbers = itertools.count(1)


@dataclass(slots=True)
class Measurement(BenchRun[ClientResults]):
    """One run of the benchmark on one broker."""

    server: Server
    sizes: Sizes

    def measure(self, case: Case, wanted: Callable[[Contender], bool]) -> None:
        self.say(case.title)
        found = CaseResults(case)
        self.results.cases.append(found)
        contenders = [each for each in case.contenders if wanted(each)]
        if case.direction == PRODUCE:
            self._take_turns(found, contenders, self._produce)
            return
        with self._filled_topic(case) as (topic, record_count):
            self._take_turns(
                found,
                contenders,
                lambda each, case: self._run(each, case, topic, record_count),
            )

    def _take_turns(
        self,
        found: CaseResults,
        contenders: list[Contender],
        run: Callable[[Contender, Case], ClientFigures],
    ) -> None:
        """Each round begins with another; whoever fails is out of the case."""
        for number in range(self.sizes.rounds):
            shift = number % max(1, len(contenders))
            for contender in [*contenders[shift:], *contenders[:shift]]:
                settle_disk()
                touch_memory(int(self.sizes.run_s * found.case.memory_bytes_per_s))
                try:
                    figures = run(contender, found.case)
                except Exception as error:
                    what = f"{found.case.title}, {contender.title}"
                    # A client that ended with an exception printed where it came from, too.
                    reason = str(error).strip().splitlines()[-1:] or [type(error).__name__]
                    self.results.failures.append(f"{what}: {reason[0]}")
                    self.say(f"{what} failed: {error}")
                    contenders = [each for each in contenders if each is not contender]
                    found.runs.pop(contender.job, None)
                    continue
                found.runs.setdefault(contender.job, []).append(figures)

    def _produce(self, contender: Contender, case: Case) -> ClientFigures:
        with self.server.topic(f"produce-{next(_topic_numbers)}", PARTITION_COUNT) as topic:
            figures = self._run(contender, case, topic, 0)
            stored = self._stored_count(topic)
        if stored != figures.record_count:
            raise RuntimeError(f"the broker has {stored} records of {figures.record_count}")
        return figures

    def _run(
        self, contender: Contender, case: Case, topic: str, record_count: int
    ) -> ClientFigures:
        load = Load(
            bootstrap=self.server.bootstrap,
            topic=topic,
            partition_count=PARTITION_COUNT,
            record_size_bytes=case.record_size_bytes,
            is_keyed=case.is_keyed,
            acks=case.acks,
            is_tuned=case.is_tuned,
            run_s=self.sizes.run_s,
            record_count=record_count,
        )
        told: dict[str, float] = {}

        def work() -> ClientRun:
            told.update(run_client(contender.job, load))
            count = int(told["record_count"])
            return ClientRun(count, count * case.record_size_bytes, told["seconds"])

        observed = observe(self.server, work)
        return ClientFigures(
            record_count=observed.run.record_count,
            seconds=observed.run.seconds,
            cpu_s=told["cpu_s"],
            resident_bytes=told["resident_bytes"],
            broker_cpu_s=observed.cpu_s,
        )

    def _filled_topic(self, case: Case) -> AbstractContextManager[FilledTopic]:
        return filled_topic(
            self.server,
            f"consume-{next(_topic_numbers)}",
            PARTITION_COUNT,
            case.record_size_bytes,
            self.sizes.consumed_bytes,
            key_size_bytes=_KEY_SIZE_BYTES if case.is_keyed else None,
        )

    def _stored_count(self, topic: str) -> int:
        with self.server.connect() as client:
            return client.record_count(topic, PARTITION_COUNT)
