"""The commands in the documents make sense to the command line, whatever a cluster says to them."""

import re
import shlex
from pathlib import Path

import pytest

from tests.support.command import run_command

DOCUMENTS = Path(__file__).parents[2] / "docs"
NOWHERE = "127.0.0.1:1"
#: They would run until they are stopped.
SERVERS = ("headwater serve", "headwater zookeeper")


def commands(*pages: str) -> list[str]:
    text = "".join((DOCUMENTS / page).read_text() for page in pages)
    blocks = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
    lines = [line.split(" #")[0].strip() for block in blocks for line in block.splitlines()]
    return [line for line in lines if line]


def clients() -> list[str]:
    found = commands("groups.md", "cluster.md", "dead-letters.md", "trace.md")
    return sorted({line for line in found if not line.startswith(SERVERS)})


def servers() -> list[str]:
    return sorted({line for line in commands("cluster.md") if line.startswith(SERVERS)})


def test_there_are_commands() -> None:
    assert len(clients()) > 15 and len(servers()) > 4


@pytest.mark.parametrize("line", servers())
def test_a_documented_server_has_these_options(line: str) -> None:
    # Help comes after the options are understood, and before anything is started.
    finished = run_command(*shlex.split(line)[1:], "--help")
    assert (finished.exit_code, finished.stderr) == (0, "")


@pytest.mark.parametrize("line", clients())
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
    missing = r"(billing\.csv|letters\.jsonl): No such file"
    assert re.match(rf"headwater: (Cannot connect to|{missing})", finished.stderr)
