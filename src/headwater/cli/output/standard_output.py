"""Standard output for commands whose output is piped: any bytes in names, and a quiet end."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Iterator

import typer

EXIT_READER_GONE = 1


@contextlib.contextmanager
def standard_output() -> Iterator[None]:
    """Lets file names of any bytes through, and ends quietly when the reader has seen enough."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="surrogateescape")
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        # What is still buffered must not fail once more when the process ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(EXIT_READER_GONE) from None
