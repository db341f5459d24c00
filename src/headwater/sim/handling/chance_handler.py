"""A handler that succeeds, fails, gives up or takes long, by chance; it writes down all of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random

from headwater.client.consumer.record import ConsumerRecord
from headwater.client.failures.failed_record import origin_of
from headwater.client.failures.verdicts import DeadLetter, Retry
from headwater.sim.handling.ledger import HandlerRun, HandlingLedger, Verdict
from headwater.wire.delayed.headers import ATTEMPTS_HEADER

#: How the values begin that cannot be deserialized.
UNREADABLE = b"!"


class HopelessError(Exception):
    """What the worker was told never to try again."""


def deserialize(value: bytes) -> str:
    if value.startswith(UNREADABLE):
        raise ValueError("this is no value")
    return value.decode()


def attempt_of(headers: tuple[tuple[str, bytes | None], ...]) -> int:
    """How often the record failed, as its broker says."""
    return int(dict(headers).get(ATTEMPTS_HEADER) or b"0")


class ChanceHandler:
    def __init__(
        self,
        program: str,
        ledger: HandlingLedger,
        random: Random,
        now_s: Callable[[], float],
        *,
        failure_ratio: float = 0.4,
    ) -> None:
        self._program = program
        self._ledger = ledger
        self._random = random
        self._now_s = now_s
        self._failure_ratio = failure_ratio

    async def __call__(self, record: ConsumerRecord) -> None:
        run = self._begin(record)
        await asyncio.sleep(self._duration_s())
        error = self._choose()
        run.ended_s = self._now_s()
        if error is None:
            run.verdict = Verdict.DONE
            return
        run.verdict = (
            Verdict.DEAD if isinstance(error, DeadLetter | HopelessError) else Verdict.FAILED
        )
        if isinstance(error, Retry) and error.after_ms is not None:
            run.after_s = error.after_ms / 1000
        raise error

    def _begin(self, record: ConsumerRecord) -> HandlerRun:
        run = HandlerRun(
            self._ledger.tenure(self._program, record.topic_partition),
            record.offset,
            record.key,
            str(origin_of(record)),
            attempt_of(record.headers),
            self._now_s(),
        )
        self._ledger.runs.append(run)
        return run

    def _duration_s(self) -> float:
        chance = self._random.random()
        if chance < 0.5:
            return 0.0
        # Some take so long that their worker is shut out of its group.
        return self._random.random() * (0.2 if chance < 0.9 else 2.0 if chance < 0.97 else 9.0)

    def _choose(self) -> Exception | None:
        random = self._random
        if random.random() > self._failure_ratio:
            return None
        return random.choice(
            (
                RuntimeError("it failed"),
                RuntimeError("it failed"),
                Retry("it is busy"),
                Retry("it is busy", after=random.choice((0, 0.7, 4.0))),
                DeadLetter("it is refused"),
                HopelessError("it is hopeless"),
            )
        )
