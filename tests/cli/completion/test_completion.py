"""`headwater completion`, tried in the shells themselves."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from headwater.testing import broker
from tests.support.command import run_command
from tests.support.requirements import require_tool

TIMEOUT_S = 120.0
#: What is typed up to Tab, and what must be offered.
CASES = (
    (("to",), {"topics"}),
    (("topics", ""), {"create", "list", "describe", "alter", "delete"}),
    (("topics", "--create", "--par"), {"--partitions"}),
    (("produce", "x", "--compression-codec", ""), {"none", "gzip", "snappy", "lz4", "zstd"}),
    (("completion", ""), {"bash", "zsh", "fish"}),
)
BASH = """
source <(headwater completion bash)
tab() {
    COMP_WORDS=(headwater "$@"); COMP_CWORD=$#; COMPREPLY=()
    _headwater_completion headwater
    printf '%s\\n' "${COMPREPLY[@]}" ""
}
"""
ZSH = """
autoload -Uz compinit; compinit -u -d "$TMPDIR/zcompdump"
source <(headwater completion zsh)
_arguments() { print -r -- "$1" }
_files() {}
tab() {
    words=(headwater "$@"); CURRENT=$(($# + 1))
    _headwater_completion; print
}
"""
FISH = """
headwater completion fish | source
function tab; complete -C "headwater $argv"; echo; end
"""


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """One in which `headwater` is this one."""
    program = tmp_path / "headwater"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m headwater "$@"\n')
    program.chmod(0o755)
    inherited = {key: value for key, value in os.environ.items() if key != "TERM"}
    return inherited | {
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "TMPDIR": str(tmp_path),
    }


def offers(shell: str, program: str, environment: dict[str, str]) -> list[set[str]]:
    """What the shell would show for each case."""
    path = require_tool(shell)
    calls = "\n".join("tab " + " ".join(word or "''" for word in typed) for typed, _ in CASES)
    options = ["--no-config"] if shell == "fish" else ["--norc"] if shell == "bash" else ["-f"]
    done = subprocess.run(
        [path, *options, "-c", program + calls],
        env=environment,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return [set(block.splitlines()) for block in done.stdout.rstrip("\n").split("\n\n")]


def test_bash(environment: dict[str, str]) -> None:
    assert offers("bash", BASH, environment) == [expected for _, expected in CASES]


def test_zsh(environment: dict[str, str]) -> None:
    shown = offers("zsh", ZSH, environment)
    # Names in quotes, most with their help behind them.
    names = [set(re.findall(r'"([^"]*)"(?::"[^"]*")?', " ".join(block))) for block in shown]
    assert names == [expected for _, expected in CASES]


def test_fish(environment: dict[str, str]) -> None:
    shown = offers("fish", FISH, environment)
    names = [{line.split("\t")[0] for line in block} for block in shown]
    assert names == [expected for _, expected in CASES]


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    """A broker with two topics and a group."""
    with broker() as running:
        for topic in ("orders", "payments"):
            running.create_topic(topic)
        made = run_command(
            *("groups", "reset-offsets", "billing", "--topic", "orders", "--to-earliest"),
            *("--execute", "-b", running.bootstrap),
        )
        assert made.exit_code == 0
        yield running.bootstrap


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("consume pay", ["payments"]),
        ("topics --describe --topic ", ["orders", "payments"]),
        ("groups describe ", ["billing"]),
    ],
)
def test_names_come_from_the_cluster(
    typed: str, offered: list[str], bootstrap: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADWATER_BOOTSTRAP_SERVER", bootstrap)
    monkeypatch.setenv("_HEADWATER_COMPLETE", "complete_fish")
    monkeypatch.setenv("_TYPER_COMPLETE_FISH_ACTION", "get-args")
    monkeypatch.setenv("_TYPER_COMPLETE_ARGS", f"headwater {typed}")
    shown = run_command()
    names = [line for line in shown.lines if not line.startswith("__")]
    assert (shown.exit_code, shown.stderr, names) == (0, "", offered)


def test_a_cluster_that_is_not_there_offers_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_HEADWATER_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", "headwater consume -b 127.0.0.1:1 ''")
    monkeypatch.setenv("COMP_CWORD", "4")
    shown = run_command()
    assert (shown.exit_code, shown.stdout.strip(), shown.stderr) == (0, "", "")
