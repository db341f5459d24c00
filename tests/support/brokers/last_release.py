"""The last release of Headwater, taken out of the history of this repository, and brokers of it.

A clone without history (`git clone --depth`) does not have it; a test that asks for it then fails,
and says what to do.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Final

import pytest

#: 0.9.0. With the next release this becomes the commit of that one.
COMMIT: Final = "eb90b76c1816c71fc4cefd760fb4edd8c5b808e1"
_ROOT: Final = Path(__file__).parents[3]


def take_out(directory: Path) -> Path:
    """Write the release's source below a directory; what is to be PYTHONPATH for it."""
    directory.mkdir(parents=True)
    archive = subprocess.Popen(
        ["git", "-C", str(_ROOT), "archive", COMMIT, "src"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert archive.stdout is not None and archive.stderr is not None
    with archive:
        subprocess.run(["tar", "-x", "-C", str(directory)], stdin=archive.stdout, check=False)
        reason = archive.stderr.read().decode().strip()
    if archive.returncode:
        pytest.fail(
            f"The last release is commit {COMMIT[:12]}, which this clone does not have ({reason}): "
            "fetch the whole history, with `git fetch --unshallow`."
        )
    return directory / "src"


def command_prefix(source: Path) -> tuple[str, ...]:
    """What makes a broker's command one of that release."""
    return ("/usr/bin/env", f"PYTHONPATH={source}", "PYTHONDONTWRITEBYTECODE=1")
