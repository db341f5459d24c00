import subprocess
import sys
from collections.abc import Callable

import pytest
import typer

from headwater import __version__
from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.setting import SettingError, SettingFaults
from headwater.cli import app as command


@pytest.fixture
def fail_with(monkeypatch: pytest.MonkeyPatch) -> Callable[[Exception], None]:
    """Makes the command consist of `go`, which fails in the given way."""

    def install(failure: Exception) -> None:
        broken = typer.Typer()

        @broken.command()
        def go() -> None:
            raise failure

        monkeypatch.setattr(command, "build_app", lambda arguments: broken)
        monkeypatch.delenv("HEADWATER_DEBUG", raising=False)

    return install


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--version"]) == 0
    assert capsys.readouterr().out == f"headwater {__version__}\n"


def test_help_lists_every_subcommand(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--help"]) == 0
    shown = capsys.readouterr().out
    assert command.SUBCOMMANDS
    for name in command.SUBCOMMANDS:
        assert name in shown


@pytest.mark.parametrize("arguments", [["nonsense"], ["--nonsense"]])
def test_a_senseless_command_line_exits_with_2(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main(arguments) == 2
    assert "nonsense" in capsys.readouterr().err


@pytest.mark.parametrize("name", command.SUBCOMMANDS)
def test_every_subcommand_loads(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main([name, "--help"]) == 0
    assert f"headwater {name}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("failure", "sentence"),
    [
        (KafkaError(ErrorCode.REQUEST_TIMED_OUT, "It took 31 s."), "It took 31 s."),
        (SettingError("There is no setting 'x'."), "There is no setting 'x'."),
        (FileNotFoundError(2, "No such file or directory", "a.log"), "a.log: No such file"),
        (OSError(28, "No space left on device"), "No space left on device."),
        (ValueError("odd"), "unexpected ValueError: odd (set HEADWATER_DEBUG=1"),
    ],
)
def test_a_failure_is_one_line_and_exit_code_1(
    failure: Exception,
    sentence: str,
    fail_with: Callable[[Exception], None],
    capsys: pytest.CaptureFixture[str],
) -> None:
    fail_with(failure)
    assert command.main([]) == 1
    printed = capsys.readouterr()
    assert printed.err.startswith(f"headwater: {sentence}")
    assert printed.err.count("\n") == 1
    assert printed.out == ""


def test_each_fault_of_a_configuration_is_a_line(
    fail_with: Callable[[Exception], None], capsys: pytest.CaptureFixture[str]
) -> None:
    fail_with(SettingFaults(["One is wrong.", "Two\nis wrong."]))
    assert command.main([]) == 1
    printed = capsys.readouterr()
    assert printed.err == "headwater: One is wrong.\nheadwater: Two\\nis wrong.\n"


def test_debugging_shows_the_failure_itself(
    fail_with: Callable[[Exception], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    fail_with(ValueError("odd"))
    monkeypatch.setenv("HEADWATER_DEBUG", "1")
    with pytest.raises(ValueError, match="odd"):
        command.main([])


def test_starting_loads_no_more_than_it_needs() -> None:
    script = (
        "import sys\n"
        "from headwater.cli.app import main\n"
        "code = main(['--version'])\n"
        "heavy = {'rich', 'kio', 'uvloop', 'asyncio', 'headwater.storage', 'headwater.wire'}\n"
        "sys.exit(f'loaded {heavy & set(sys.modules)}' if heavy & set(sys.modules) else code)\n"
    )
    finished = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=60
    )
    assert (finished.returncode, finished.stderr) == (0, "")


def test_it_runs_as_a_module() -> None:
    finished = subprocess.run(
        [sys.executable, "-m", "headwater", "--version"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (finished.returncode, finished.stdout) == (0, f"headwater {__version__}\n")


@pytest.mark.parametrize(
    "arguments", [("topics", "list"), ("get-offsets", "x"), ("groups", "list")]
)
def test_only_what_reads_and_writes_records_loads_arrays(arguments: tuple[str, ...]) -> None:
    script = (
        "import sys\n"
        "from headwater.cli.app import main\n"
        f"main([*{arguments!r}, '-b', '127.0.0.1:1'])\n"
        "sys.exit('numpy' in sys.modules)\n"
    )
    finished = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=60
    )
    assert finished.returncode == 0
