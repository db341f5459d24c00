"""Checking what is on disk without changing it: `headwater log verify`.

`verify_directory` takes a partition's directory, a log directory, or a directory that holds log
directories, and finds out which. It writes nothing, whatever file system it is given, and may run
beside a broker: what a broker can be in the middle of is then a note and not a problem.

How a log directory was left decides what to expect. After a clean shutdown everything must fit.
Without one, the next start looks at all that lies behind the recovery point, so faults of indexes
there do not matter and a torn end is no surprise. A partition's directory on its own is judged by
the directory above it, if that is a log directory.
"""

from __future__ import annotations

from headwater.storage.directories.directory_entries import EntryKind, parse_directory_name
from headwater.storage.directories.partition_metadata import PARTITION_METADATA
from headwater.storage.disk.files import FileSystem
from headwater.storage.inspection.verify.findings import Finding, Report
from headwater.storage.inspection.verify.log_directory import TOP_FILES, IsLocked, LogDirectoryCheck
from headwater.storage.leader_epochs import LEADER_EPOCH_CHECKPOINT
from headwater.storage.segments.segment_files import LOG, parse_segment_file_name


class NotALogDirectoryError(Exception):
    """There is no log in the directory."""


def _never_locked(_path: str) -> bool:
    return False


def verify_directory(
    files: FileSystem, directory: str, *, deep: bool = False, is_locked: IsLocked = _never_locked
) -> list[Finding]:
    """All that is wrong in a directory, and what else is worth a note."""
    report = Report(deep=deep)
    verify_into(report, files, directory, is_locked=is_locked)
    return report.findings


def verify_into(
    report: Report, files: FileSystem, directory: str, *, is_locked: IsLocked = _never_locked
) -> None:
    """The same, told to `report` as it goes on."""
    directory = directory.rstrip("/") or "/"
    if not files.is_dir(directory):
        raise NotALogDirectoryError(f"{directory} is not a directory.")
    if _is_partition(files, directory):
        above, _, name = directory.rpartition("/")
        LogDirectoryCheck(report, files, above or ".", is_locked).run([name])
        return
    log_directories = find_log_directories(files, directory)
    if not log_directories:
        raise NotALogDirectoryError(f"{directory} holds no log of a Kafka partition.")
    for log_directory in log_directories:
        LogDirectoryCheck(report, files, log_directory, is_locked).run()


def find_log_directories(files: FileSystem, directory: str) -> list[str]:
    """The directory itself or those in it that are log directories."""
    if _is_log_directory(files, directory):
        return [directory]
    paths = [f"{directory}/{name}" for name in files.list_dir(directory)]
    return [path for path in paths if files.is_dir(path) and _is_log_directory(files, path)]


def count_log_bytes(files: FileSystem, directory: str) -> int:
    """How much log there is to walk, for a progress bar."""
    if _is_partition(files, directory):
        return _partition_bytes(files, directory)
    return sum(
        _partition_bytes(files, f"{log_directory}/{name}")
        for log_directory in find_log_directories(files, directory)
        for name in files.list_dir(log_directory)
        if files.is_dir(f"{log_directory}/{name}")
    )


def _partition_bytes(files: FileSystem, directory: str) -> int:
    total = 0
    for name in files.list_dir(directory):
        if name.endswith(LOG):
            total += files.size(f"{directory}/{name}")
    return total


def _is_partition(files: FileSystem, directory: str) -> bool:
    names = files.list_dir(directory)
    return TOP_FILES.isdisjoint(names) and any(
        name in (LEADER_EPOCH_CHECKPOINT, PARTITION_METADATA) or parse_segment_file_name(name)
        for name in names
    )


def _is_log_directory(files: FileSystem, directory: str) -> bool:
    names = files.list_dir(directory)
    if not TOP_FILES.isdisjoint(names):
        return True
    paths = [
        f"{directory}/{name}"
        for name in names
        if parse_directory_name(name).kind is not EntryKind.FOREIGN
    ]
    return any(files.is_dir(path) and _is_partition(files, path) for path in paths)
