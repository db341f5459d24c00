"""The program in docs/spark.md runs, and prints what the page says it prints.

All blocks of Python on the page are one program, and a block of text after one of them is what has
been printed by then. A block under the mark below is not part of it.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from headwater.testing.running_broker import RunningBroker

PAGE: Final = Path(__file__).parents[3] / "docs" / "spark.md"
ADDRESS: Final = "localhost:9092"
NOT_RUN: Final = "<!-- not run -->"
TIMEOUT_S: Final = 500.0

_BLOCK: Final = re.compile(
    rf"(?P<mark>{NOT_RUN}\n)?^```(?P<kind>\w+)\n(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE
)


def blocks(kind: str) -> list[str]:
    found = _BLOCK.finditer(PAGE.read_text())
    return [block["text"] for block in found if block["kind"] == kind and block["mark"] is None]


def test_the_program_is_one_that_python_can_read() -> None:
    program = "\n".join(blocks("python"))
    compile(program, str(PAGE), "exec")
    assert len(blocks("python")) >= 8
    assert program.count(ADDRESS) >= 8


@pytest.mark.full
def test_the_program_prints_what_the_page_says(
    headwater_fresh_broker: RunningBroker, tmp_path: Path
) -> None:
    program = "\n".join(blocks("python")).replace(ADDRESS, headwater_fresh_broker.bootstrap)
    done = subprocess.run(
        [sys.executable, "-c", f"{program}\nspark.stop()\n"],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "".join(blocks("text"))
