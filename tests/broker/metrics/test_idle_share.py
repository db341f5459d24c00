"""The idle share of the last while."""

import threading
import time

import pytest

from headwater.broker.metrics import idle_share
from headwater.broker.metrics.idle_share import IdleShare, loop_busy_s


def test_before_there_is_anything_to_compare_all_is_idle() -> None:
    share = IdleShare()
    assert share.share(5.0, 3.0) == 1.0
    share.sample(5.0, 3.0)
    assert share.share(5.0, 3.0) == 1.0


def test_the_share_is_what_was_not_busy() -> None:
    share = IdleShare(window_s=60)
    share.sample(100.0, 10.0)
    assert share.share(110.0, 12.5) == pytest.approx(0.75)
    assert share.share(110.0, 20.0, size=4) == pytest.approx(0.75)


def test_what_lies_before_the_window_is_forgotten() -> None:
    share = IdleShare(window_s=10)
    for second in range(0, 101, 5):
        # Busy all the time until second 50, idle from then on.
        share.sample(float(second), float(min(second, 50)))
    assert share.share(100.0, 50.0) == 1.0
    share.sample(105.0, 55.0)
    assert share.share(105.0, 55.0) == pytest.approx(0.5)
    assert len(share._samples) <= 4


def test_a_count_that_runs_ahead_or_back_stays_in_range() -> None:
    share = IdleShare()
    share.sample(0.0, 5.0)
    assert share.share(1.0, 50.0) == 0.0
    assert share.share(1.0, 0.0) == 1.0


def test_a_busy_thread_is_seen_busy_and_a_sleeping_one_is_not() -> None:
    grown: dict[str, float] = {}

    def measure(name: str, spin: bool) -> None:
        before_s, deadline_s = loop_busy_s(), time.perf_counter() + 0.2
        if spin:
            while time.perf_counter() < deadline_s:
                pass
        else:
            time.sleep(0.2)
        grown[name] = loop_busy_s() - before_s

    for name, spin in (("spins", True), ("sleeps", False)):
        thread = threading.Thread(target=measure, args=(name, spin))
        thread.start()
        thread.join()
    # A thread that wants to run counts as busy also where others take its core.
    assert grown["spins"] > 0.1
    assert grown["sleeps"] < 0.1


def test_without_the_kernels_figures_the_threads_cpu_time_counts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(idle_share, "_SCHEDULER_FILE", "/nowhere")
    assert loop_busy_s() == pytest.approx(time.thread_time(), abs=0.1)
