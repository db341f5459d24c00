"""Dumping files and looking at what was shown."""

import io
import json
from pathlib import Path
from typing import Any

from headwater.storage.inspection.dump.as_json import JsonDump
from headwater.storage.inspection.dump.as_text import TextDump
from headwater.storage.inspection.dump.dump import DumpOptions, dump_file
from headwater.storage.inspection.dump.items import DumpItem
from headwater.storage.inspection.read_only_files import ReadOnlyFiles

LOG_NAME = f"{0:020d}.log"


def text_of(
    path: Path, *, options: DumpOptions | None = None, **settings: Any
) -> tuple[list[str], list[str]]:
    """The lines on standard output below that of the file, and those on standard error."""
    out, err = io.StringIO(), io.StringIO()
    writer = TextDump(out, err, **settings)
    writer.write(dump_file(ReadOnlyFiles(), str(path), options or DumpOptions()))
    writer.finish()
    first, *lines = out.getvalue().splitlines()
    assert first == f"Dumping {path}"
    return lines, err.getvalue().splitlines()


def json_of(path: Path, options: DumpOptions | None = None, **settings: Any) -> list[Any]:
    out = io.StringIO()
    writer = JsonDump(out, **settings)
    writer.write(dump_file(ReadOnlyFiles(), str(path), options or DumpOptions()))
    writer.finish()
    return [json.loads(line) for line in out.getvalue().splitlines()]


def items_of(path: Path, options: DumpOptions | None = None) -> list[DumpItem]:
    return list(dump_file(ReadOnlyFiles(), str(path), options or DumpOptions()))


def write_log(directory: Path, *batches: bytes) -> Path:
    path = directory / LOG_NAME
    path.write_bytes(b"".join(batches))
    return path


DEEP = DumpOptions(deep=True)
