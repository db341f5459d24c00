"""The first signal asks, the second ends; before there is something to finish the first does."""

import os
import signal

import pytest

from headwater.pipeline.runs.run_record import RunRecord
from headwater.pipeline.runs.run_signals import RunSignals, StoppedAtOnce
from headwater.pipeline.runs.running_pipeline import Wish


def ignore(record: RunRecord) -> None:
    """Nobody looks."""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_second_signal_ends_it_at_once(number: signal.Signals) -> None:
    said: list[str] = []
    before = signal.getsignal(number)
    signals = RunSignals(ignore, said.append)
    signals.install()
    # As a session does that has a handler of its own.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signals.install()
    try:
        signals.running()
        assert signals.wish() is Wish.GO_ON
        os.kill(os.getpid(), number)
        signals.wait(10.0)
        assert signals.wish() is Wish.STOP
        assert said == ["Stopping after the current batches; a second Ctrl-C stops it at once."]
        with pytest.raises(StoppedAtOnce):
            os.kill(os.getpid(), number)
            signals.wait(10.0)
    finally:
        signals.restore()
    assert signal.getsignal(number) is before


def test_what_only_starts_is_ended_by_the_first() -> None:
    signals = RunSignals(ignore)
    signals.install()
    try:
        with pytest.raises(StoppedAtOnce):
            os.kill(os.getpid(), signal.SIGTERM)
            signals.wait(10.0)
    finally:
        signals.restore()
