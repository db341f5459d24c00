"""The options of `headwater demo`; the demo itself runs in tests/pipeline/demo."""

import importlib.util
from pathlib import Path

import pytest

from headwater.base.extras import how_to_install
from headwater.pipeline.demo import run as demo_run
from tests.support.command import run_command

DemoOptions = demo_run.DemoOptions


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[DemoOptions]:
    """What the demo is asked to do, in place of doing it."""
    given: list[DemoOptions] = []

    def note(options: DemoOptions, _console: object) -> int:
        given.append(options)
        return 0

    monkeypatch.setattr(demo_run, "run_demo", note)
    monkeypatch.chdir(tmp_path)
    return given


def test_without_options_it_runs_with_the_defaults(asked: list[DemoOptions]) -> None:
    assert run_command("demo").exit_code == 0
    assert asked == [DemoOptions()]


def test_options(asked: list[DemoOptions]) -> None:
    finished = run_command(
        *("demo", "--orders", 300, "--seconds", 1.5, "--seed", 7, "--chart", "c.png"),
        *("--keep", "kept", "--master", "local[1]", "--conf", "spark.a=b=c"),
    )
    assert (finished.exit_code, finished.stderr) == (0, "")
    assert asked == [
        DemoOptions(7, 300, 1.5, Path("kept"), Path("c.png"), "local[1]", {"spark.a": "b=c"})
    ]


@pytest.mark.parametrize("arguments", [("--keep",), ("--keep", "--orders", "200")])
def test_a_place_to_keep_the_data_has_a_default(
    arguments: tuple[str, ...], asked: list[DemoOptions]
) -> None:
    assert run_command("demo", *arguments).exit_code == 0
    assert asked[0].directory == Path("headwater-demo")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--orders", "10"), "--orders: 10 is less than 200"),
        (("--keep", "kept"), "--keep: kept is not empty"),
        (("--conf", "spark.ui.enabled"), "--conf: 'spark.ui.enabled' should be NAME=VALUE."),
    ],
)
def test_what_makes_no_sense_is_refused(
    arguments: tuple[str, ...], sentence: str, asked: list[DemoOptions], tmp_path: Path
) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "file").touch()
    refused = run_command("demo", *arguments)
    assert (refused.exit_code, asked) == (2, [])
    assert refused.stderr.startswith(f"headwater: {sentence}")


def test_without_spark_it_says_what_to_install(
    asked: list[DemoOptions], monkeypatch: pytest.MonkeyPatch
) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "pyspark" else find(name)
    )
    failed = run_command("demo")
    assert (failed.exit_code, failed.stdout, asked) == (1, "", [])
    assert failed.stderr == (
        f"headwater: The demo needs the Python package pyspark: {how_to_install('demo')}\n"
    )
