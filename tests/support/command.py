"""The `headwater` command in this process: its real entry, with streams of its own."""

import io
import sys
from typing import NamedTuple

from headwater.cli.app import main


class Finished(NamedTuple):
    exit_code: int
    stdout: str
    stderr: str
    #: What was written, byte for byte.
    output: bytes

    @property
    def lines(self) -> list[str]:
        return self.stdout.splitlines()


def run_command(*arguments: object, input: bytes = b"") -> Finished:
    """Run it to its end."""
    saved = sys.stdin, sys.stdout, sys.stderr
    output, errors = io.BytesIO(), io.BytesIO()
    sys.stdin = io.TextIOWrapper(io.BytesIO(input))
    sys.stdout = io.TextIOWrapper(output, write_through=True)
    sys.stderr = io.TextIOWrapper(errors, write_through=True)
    try:
        exit_code = main(list(map(str, arguments)))
        sys.stdout.flush()
        written = output.getvalue()
        return Finished(
            exit_code, written.decode(errors="replace"), errors.getvalue().decode(), written
        )
    finally:
        # Detached, so that they do not close what was read from them.
        sys.stdin, sys.stdout, sys.stderr = saved
