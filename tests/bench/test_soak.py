import functools
import operator
import os

import pytest

from bench import soak

#: Fails for seed 0 and for no other; it can be sent to another process by name.
FAILS_FOR_ZERO = functools.partial(operator.floordiv, 1)


def test_a_few_seeds_go_through_every_campaign(capsys: pytest.CaptureFixture[str]) -> None:
    # But for this one: it needs a process for each seed, and has a test in tests/fuzz.
    names = [name for name in soak.CAMPAIGNS if name != "hostile"]
    chosen = [argument for name in names for argument in ("--campaign", name)]
    assert soak.main(["--seed", "1000", "--count", "3", *chosen]) == 0
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "from seed 1000 on" in shown.err
    assert f"{3 * len(names)} seeds, " in shown.err
    assert " 0 crashes" not in shown.err


def test_a_failure_starts_with_its_seed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(soak.CAMPAIGNS, "planted", FAILS_FOR_ZERO)
    arguments = ["--campaign", "planted", "--seed", "-3", "--workers", "1"]
    assert soak.main(arguments) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == (
        "seed 0 fails in the campaign planted; "
        'again: make soak ARGS="--campaign planted --seed 0 --count 1"'
    )
    assert "ZeroDivisionError" in "\n".join(lines)


def test_the_end_of_a_process_is_a_failure(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(soak.CAMPAIGNS, "deadly", os._exit)
    arguments = ["--campaign", "deadly", "--seed", "7", "--count", "1", "--workers", "1"]
    assert soak.main(arguments) == 1
    shown = capsys.readouterr().out
    assert shown.startswith("seed 7 fails in the campaign deadly")
    assert "A worker process ended" in shown


def test_time_that_is_up_ends_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert soak.main(["--minutes", "0"]) == 0
    assert "0 seeds, " in capsys.readouterr().err


def test_an_endless_seed_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    def endless(_seed: int) -> int:
        while True:
            continue

    monkeypatch.setattr(soak, "_SEED_SECONDS_MAX", 0.05)
    outcome = soak.run_task(soak.Task("endless", endless, 5))
    assert outcome.failure is not None
    assert "did not come to an end" in outcome.failure
