"""A machine of a client under a microscope: a test sees each request, and answers or fails it."""

from __future__ import annotations

from typing import Any, TypeVar

from headwater.base.errors import KafkaError, NetworkError
from headwater.client.machines.ask import Ask, Machine
from headwater.wire.schema import Message

R = TypeVar("R", bound=Message)


class LoneMachine:
    """`now_s` is the time, which only `wait` and `wait_until` move."""

    def __init__(self, machine: Machine, now_s: float = 100.0) -> None:
        self.machine = machine
        self.now_s = now_s
        self.open: list[Ask] = []

    def look(self) -> list[Message]:
        """Take what is asked for by now; the requests of all that has no answer yet."""
        self.open += self.machine.asks(self.now_s)
        return [ask.request for ask in self.open]

    def take(self, kind: type[R]) -> tuple[R, Ask]:
        """The one open request of that kind."""
        self.look()
        [ask] = [ask for ask in self.open if isinstance(ask.request, kind)]
        assert isinstance(ask.request, kind)
        return ask.request, ask

    def answer(self, kind: type[R], answer: Any) -> R:
        request, ask = self.take(kind)
        self.open.remove(ask)
        ask.on_answer(answer, self.now_s)
        return request

    def fail(self, kind: type[R], error: KafkaError | None = None) -> R:
        request, ask = self.take(kind)
        self.open.remove(ask)
        ask.on_failure(error or NetworkError("It was cut."), self.now_s)
        return request

    def wait(self, seconds: float) -> None:
        self.now_s += seconds

    def wait_for(self, kind: type[R], limit_s: float = 60.0) -> R:
        """Let time pass, from one moment that the machine names to the next, until it asks that."""
        until_s = self.now_s + limit_s
        while True:
            found = [request for request in self.look() if isinstance(request, kind)]
            if found:
                return found[-1]
            next_s = self.machine.wake_at_s(self.now_s)
            assert next_s is not None and next_s <= until_s, f"no {kind.__name__} comes"
            self.now_s = max(self.now_s, next_s)

    def is_quiet(self) -> bool:
        """Whether nothing is asked for now."""
        return not self.look()
