"""The commands in the documents make sense to the command line, whatever a cluster says to them."""

import re
import shlex
from pathlib import Path

import pytest

from tests.support.command import run_command

PAGE = Path(__file__).parents[2] / "docs" / "groups.md"
NOWHERE = "127.0.0.1:1"


def commands() -> list[str]:
    blocks = re.findall(r"```sh\n(.*?)```", PAGE.read_text(), re.DOTALL)
    lines = [line.split(" #")[0].strip() for block in blocks for line in block.splitlines()]
    return [line for line in lines if line]


def test_there_are_commands() -> None:
    assert len(commands()) > 15


@pytest.mark.parametrize("line", sorted(set(commands())))
def test_a_documented_command_is_understood(line: str) -> None:
    name, *arguments = shlex.split(line.split(" >")[0])
    assert name == "headwater"
    if "--bootstrap-server" in arguments:
        arguments[arguments.index("--bootstrap-server") + 1] = NOWHERE
    else:
        arguments += ["--bootstrap-server", NOWHERE]
    finished = run_command(*arguments)
    # It got as far as the cluster, or to a file that the reader would have.
    assert finished.exit_code == 1
    assert re.match(r"headwater: (Cannot connect to|billing\.csv: No such file)", finished.stderr)
