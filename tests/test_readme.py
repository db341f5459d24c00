"""The README runs from top to bottom, in one directory, as someone new would type it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from headwater.zookeeper.release import resolve_zookeeper
from tests.support import documented_commands
from tests.support.documented_commands import Block
from tests.support.requirements import require_tool, skip_or_fail

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
MAKE_VARIABLES = ("ARGS", "MAKEFLAGS", "MAKEOVERRIDES", "MFLAGS")
TIMEOUT_S = 600.0


def test_blocks_are_read_with_their_marks() -> None:
    text = "a\n\n<!-- stays open -->\n```sh\nmake run\n```\n\n```python\nx = 1\n```\n```\nno\n```\n"
    assert documented_commands.blocks(text) == [
        Block("sh", "make run\n", True),
        Block("python", "x = 1\n", False),
    ]


def test_the_readme_runs_from_top_to_bottom(tmp_path: Path) -> None:
    for tool in ("kcat", "java", "make"):
        require_tool(tool)
    namespace = [require_tool("unshare"), *documented_commands.namespace_command()[1:]]
    if subprocess.run([*namespace, "true"], capture_output=True).returncode:
        skip_or_fail("this test needs the right to make a network namespace")
    resolve_zookeeper(print)
    # A clone whose virtual environment is made: in the namespace nothing could be downloaded.
    (tmp_path / ".venv").symlink_to(sys.prefix)
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy2(ROOT / name, tmp_path)
    if subprocess.run(["make", "--question", "spark"], cwd=tmp_path).returncode:
        skip_or_fail("the virtual environment is out of date: run `make venv`")

    ended = subprocess.run(
        [*namespace, sys.executable, "-m", "tests.support.documented_commands", str(README)],
        cwd=tmp_path,
        env={
            # Who runs this by `make` may have given that some variables of its own.
            **{name: value for name, value in os.environ.items() if name not in MAKE_VARIABLES},
            "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])),
        },
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
    )

    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "Traceback" not in ended.stderr
