"""What a test needs from the machine it runs on, beyond Python.

Where it is missing a test is skipped and says why. Where HEADWATER_REQUIRE_ALL=1 is set the machine
was prepared so that nothing is missing, and the same test fails instead of passing unseen.
"""

import os
import shutil
from typing import NoReturn

import pytest


def skip_or_fail(reason: str) -> NoReturn:
    """Skip the running test for `reason`, or fail it where nothing may be skipped."""
    if os.environ.get("HEADWATER_REQUIRE_ALL") == "1":
        pytest.fail(f"{reason} (HEADWATER_REQUIRE_ALL=1 forbids skipping)", pytrace=False)
    pytest.skip(reason)


def require_tool(command: str) -> str:
    """The path of `command`; the running test is skipped, or failed, where there is none."""
    path = shutil.which(command)
    if path is None:
        skip_or_fail(f"this test needs the command {command!r}, which is not on the PATH")
    return path
