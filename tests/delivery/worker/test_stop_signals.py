"""What SIGTERM and SIGINT do while workers run."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Iterator
from types import FrameType

import pytest

from headwater.delivery.worker.stop_signals import StopSignals


@pytest.fixture(autouse=True)
def signals_are_pythons() -> Iterator[None]:
    numbers = (signal.SIGTERM, signal.SIGINT)
    before = [signal.getsignal(number) for number in numbers]
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    for number, handler in zip(numbers, before, strict=True):
        signal.signal(number, handler)


def mine(_number: int, _frame: FrameType | None) -> None:
    """What a program does about signals."""


def test_the_first_stops_all_and_a_second_does_what_it_did() -> None:
    signals, stopped = StopSignals(), list[str]()
    with signals.stopping(lambda: stopped.append("one")):
        with signals.stopping(lambda: stopped.append("two")):
            signal.raise_signal(signal.SIGINT)
            assert stopped == ["one", "two"]
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)
        assert stopped == ["one", "two"]
    with signals.stopping(lambda: stopped.append("three")):
        signal.raise_signal(signal.SIGTERM)
    assert stopped == ["one", "two", "three"]
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_who_has_ended_leaves_them_to_the_others() -> None:
    signals, stopped = StopSignals(), list[str]()
    with signals.stopping(lambda: stopped.append("one")):
        with signals.stopping(lambda: stopped.append("two")):
            pass
        signal.raise_signal(signal.SIGTERM)
    assert stopped == ["one"]


def test_a_program_keeps_what_it_looks_after() -> None:
    signal.signal(signal.SIGTERM, mine)
    signals, stopped = StopSignals(), list[str]()
    with signals.stopping(lambda: stopped.append("polite"), is_polite=True):
        assert signal.getsignal(signal.SIGTERM) is mine
        signal.raise_signal(signal.SIGINT)
    assert stopped == ["polite"]
    with signals.stopping(lambda: stopped.append("resolute")):
        signal.raise_signal(signal.SIGTERM)
        assert signal.getsignal(signal.SIGTERM) is mine
    assert stopped == ["polite", "resolute"]


def test_what_asyncio_does_is_taken_over_and_given_back() -> None:
    signals, stopped = StopSignals(), list[str]()

    async def run() -> None:
        before = signal.getsignal(signal.SIGINT)
        with signals.stopping(lambda: stopped.append("one"), is_polite=True):
            signal.raise_signal(signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is before

    asyncio.run(run())
    assert stopped == ["one"]


def test_another_thread_leaves_them_alone() -> None:
    def run() -> None:
        with StopSignals().stopping(print):
            assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL

    failures: list[BaseException] = []
    thread = threading.Thread(target=lambda: failures.extend(_failure_of(run)))
    thread.start()
    thread.join(10)
    assert failures == []


def _failure_of(run: object) -> Iterator[BaseException]:
    try:
        assert callable(run)
        run()
    except BaseException as error:
        yield error
