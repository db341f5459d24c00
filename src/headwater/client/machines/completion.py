"""A result that is not there yet, for code that knows neither threads nor event loops.

A sans-io machine completes it; a shell turns it into what its caller can wait for. It is completed
once, by the loop that owns the machine, and callbacks run there and then.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar

from headwater.base.checks import check

T = TypeVar("T")


class Completion(Generic[T]):
    __slots__ = ("_callbacks", "_error", "_is_done", "_value")

    _value: T

    def __init__(self) -> None:
        self._is_done = False
        self._error: BaseException | None = None
        self._callbacks: list[Callable[[Completion[T]], None]] = []

    @property
    def is_done(self) -> bool:
        return self._is_done

    @property
    def error(self) -> BaseException | None:
        check(self._is_done, "an outcome was asked for before it was there")
        return self._error

    def result(self) -> T:
        if self.error is not None:
            raise self.error
        return self._value

    def succeed(self, value: T) -> None:
        self._value = value
        self._complete()

    def fail(self, error: BaseException) -> None:
        self._error = error
        self._complete()

    def when_done(self, callback: Callable[[Completion[T]], None]) -> None:
        """Call it with this completion, at once if that is done."""
        if self._is_done:
            callback(self)
        else:
            self._callbacks.append(callback)

    async def wait(self) -> T:
        """The result, for a caller on the loop that owns the machine."""
        if not self._is_done:
            done = asyncio.Event()
            self._callbacks.append(lambda _: done.set())
            await done.wait()
        return self.result()

    def _complete(self) -> None:
        check(not self._is_done, "something was completed twice")
        self._is_done = True
        callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback(self)
