"""The examples in docs/client.md run, and print what the document says they print.

The blocks of Python of one section are one program. A block of text after one of them is what has
been printed by then. A block under the mark below needs something that a test does not have.
"""

import re
import subprocess
import sys
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from tests.support.brokers.clusters import Cluster

GUIDE: Final = Path(__file__).parents[2] / "docs" / "client.md"
ADDRESS: Final = "localhost:9092"
NOT_RUN: Final = "<!-- not run -->"
TIMEOUT_S: Final = 90.0

_SECTION = re.compile(r"^#{2,3} (.+)$", re.MULTILINE)
_BLOCK = re.compile(
    rf"(?P<mark>{NOT_RUN}\n)?^```(?P<kind>python|text)\n(?P<text>.*?)^```$",
    re.DOTALL | re.MULTILINE,
)


class Example(NamedTuple):
    title: str
    program: str
    printed: list[str]


def examples() -> list[Example]:
    """One for each section that has a program."""
    parts = _SECTION.split(GUIDE.read_text())
    found = []
    for title, text in zip(parts[1::2], parts[2::2], strict=True):
        blocks = [block for block in _BLOCK.finditer(text) if block["mark"] is None]
        program = [block["text"] for block in blocks if block["kind"] == "python"]
        printed = [block["text"] for block in blocks if block["kind"] == "text"]
        if program:
            found.append(Example(title, "\n".join(program), printed))
    return found


def test_there_are_examples() -> None:
    titles = [example.title for example in examples()]
    assert len(titles) >= 10
    assert len(set(titles)) == len(titles)


@pytest.mark.parametrize("example", examples(), ids=lambda example: str(example.title))
def test_an_example_does_what_it_says(example: Example, cluster: Cluster, tmp_path: Path) -> None:
    program = example.program.replace(ADDRESS, cluster.bootstrap)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert done.stdout == "".join(example.printed)
