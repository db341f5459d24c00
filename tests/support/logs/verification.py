"""Verifying a directory, and damaging it first."""

from pathlib import Path

from headwater.storage.inspection.read_only_files import ReadOnlyFiles
from headwater.storage.inspection.verify.findings import Finding
from headwater.storage.inspection.verify.verify import verify_directory


def verify(directory: Path, *, deep: bool = True) -> list[Finding]:
    """All findings; a lock on the directory counts as that of a broker."""
    files = ReadOnlyFiles()
    return verify_directory(files, str(directory), deep=deep, is_locked=files.is_locked)


def problems(directory: Path, *, deep: bool = True) -> list[Finding]:
    return [finding for finding in verify(directory, deep=deep) if finding.is_problem]


def overwrite(path: Path, position: int, data: bytes) -> None:
    """Write over a part of a file."""
    content = bytearray(path.read_bytes())
    content[position : position + len(data)] = data
    path.write_bytes(content)
