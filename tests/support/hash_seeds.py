"""Runs of a campaign in processes where sets are ordered otherwise, as text has other hashes."""

import os
import subprocess
import sys
from pathlib import Path


def hashes_in_processes(module: str, campaign: str, seed_count: int) -> list[list[str]]:
    """The hashes of the traces of all seeds, by process."""
    script = (
        f"from tests.support.{module} import {campaign}\n"
        f"for seed in range({seed_count}): print({campaign}(seed).run())\n"
    )
    running = [
        subprocess.Popen(
            [sys.executable, "-c", script],
            cwd=Path(__file__).parents[2],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            stdout=subprocess.PIPE,
            text=True,
        )
        for hash_seed in ("1", "2")
    ]
    found = [process.communicate(timeout=600)[0].split() for process in running]
    assert [process.returncode for process in running] == [0, 0]
    return found
