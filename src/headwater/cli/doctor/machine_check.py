"""What `headwater doctor` looks at on this machine: a data directory, its disk, and the limits.

It runs beside a broker without disturbing it. All that it writes is one small file, which it syncs
to see how long that takes and removes again.
"""

from __future__ import annotations

import contextlib
import os
import resource
import statistics
import sys
import time
from collections.abc import Iterator

from headwater.base.python_build import PythonBuild
from headwater.cli.doctor.findings import Finding, good, note, problem
from headwater.cli.output.sizes import size_text
from headwater.cli.serve.open_files import DESCRIPTORS_MIN, reachable
from headwater.storage.directories.broker_metadata import META_PROPERTIES, read_broker_metadata
from headwater.storage.directories.clean_shutdown import CleanShutdownMarker
from headwater.storage.directories.directory_ownership import LOCK_FILE
from headwater.storage.disk.files import DiskFiles
from headwater.storage.errors import CorruptMetadataError
from headwater.storage.inspection.read_only_files import ReadOnlyFiles

FREE_SHARE_MIN = 0.10
FREE_BYTES_MIN = 1_000_000_000
SLOW_SYNC_MS = 50.0
_SYNC_COUNT = 7
_PROBE_FILE = ".headwater-doctor"

_VANISHING = frozenset({"tmpfs", "ramfs"})
_REMOTE = frozenset({"nfs", "nfs4", "cifs", "smb3", "9p", "fuse.sshfs", "afs"})


def check_limits() -> Iterator[Finding]:
    """The limits of a process that is started from here."""
    count = reachable(resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    if count < DESCRIPTORS_MIN:
        yield problem(
            "open files",
            f"A broker started from here may open {count} files, and each connection and many "
            f"segments need one: raise the hard limit ('ulimit -Hn', LimitNOFILE of a service).",
        )
    else:
        yield good("open files", f"A broker started from here may open {count} files.")


def check_python(build: PythonBuild) -> Finding:
    """Whether a broker that is started from here would be as fast as it can be."""
    if build.is_slow:
        return note(
            "python",
            f"A broker started from here runs on {build}, which takes about a third more CPU time "
            "than a Python that was built with optimisations, as those of distributions and of uv "
            "are; pyenv wants PYTHON_CONFIGURE_OPTS='--enable-optimizations --with-lto'.",
        )
    return good("python", f"A broker started from here runs on {build}.")


def check_data_directory(path: str) -> Iterator[Finding]:
    """One data directory: whose it is, how its last broker left it, and what it lies on."""
    if not os.path.isdir(path):
        yield problem("data", f"{path} is not a directory.")
        return
    yield from _check_owner(path)
    yield from _check_space(path)
    yield from _check_kind(path)
    if not os.access(path, os.W_OK | os.X_OK):
        yield problem("data", f"This user may not write to {path}.")
        return
    yield _check_sync(path)


def _check_owner(path: str) -> Iterator[Finding]:
    files = DiskFiles()
    try:
        metadata = read_broker_metadata(files, path)
    except CorruptMetadataError as error:
        yield problem("data", f"{error} A broker will not start on it.")
        return
    except OSError as error:
        yield problem("data", f"{path}/{META_PROPERTIES} cannot be read: {error.strerror}.")
        return
    if metadata is None:
        yield note("data", f"{path} has not been used by a broker yet.")
        return
    owner = f"broker {metadata.node_id} of cluster {metadata.cluster_id}"
    if _is_locked(path):
        yield good("data", f"{path} belongs to {owner}, which is running.")
    elif CleanShutdownMarker(files, path).exists:
        yield good("data", f"{path} belongs to {owner}, which is stopped and left it clean.")
    else:
        yield note(
            "data",
            f"{path} belongs to {owner}, which was not stopped cleanly: its next start will "
            "recover the logs.",
        )


def _is_locked(path: str) -> bool:
    # Elsewhere asking would take the lock for a moment, and turn a broker away that starts then.
    if sys.platform != "linux":
        return False
    try:
        return ReadOnlyFiles().is_locked(f"{path}/{LOCK_FILE}")
    except OSError:
        return False


def _check_space(path: str) -> Iterator[Finding]:
    disk = os.statvfs(path)
    yield space_finding(path, disk.f_bavail * disk.f_frsize, disk.f_blocks * disk.f_frsize)


def space_finding(path: str, free_bytes: int, total_bytes: int) -> Finding:
    """Whether a disk has room left."""
    share = free_bytes / total_bytes if total_bytes > 0 else 0.0
    room = f"{size_text(free_bytes)} of {size_text(total_bytes)} ({share:.0%}) free"
    if free_bytes < FREE_BYTES_MIN or share < FREE_SHARE_MIN:
        return problem(
            "disk space", f"The disk of {path} has only {room}: a full disk refuses every write."
        )
    return good("disk space", f"The disk of {path} has {room}.")


def _check_kind(path: str) -> Iterator[Finding]:
    kind = _file_system(path)
    if kind is None:
        return
    if kind in _VANISHING:
        yield problem("disk type", f"{path} lies in memory ({kind}): a restart loses all of it.")
    elif kind in _REMOTE:
        yield problem(
            "disk type",
            f"{path} lies on a network file system ({kind}), where locks and syncs may not do what "
            "they promise.",
        )
    elif kind == "overlay":
        yield note("disk type", f"{path} lies inside a container and goes with it ({kind}).")
    else:
        yield good("disk type", f"{path} lies on {kind}.")


def _file_system(path: str) -> str | None:
    """The kind of file system that holds a path, where the operating system tells it."""
    real = os.path.realpath(path)
    best, kind = "", None
    with contextlib.suppress(OSError), open("/proc/self/mounts", encoding="utf-8") as mounts:
        for line in mounts:
            _, mounted_at, found, *_ = line.split()
            top = mounted_at.replace("\\040", " ").rstrip("/")
            if (real == top or real.startswith(f"{top}/")) and len(top) >= len(best):
                best, kind = top, found
    return kind


def _check_sync(path: str) -> Finding:
    """How long an acknowledgement waits that must be on disk."""
    name = f"{path}/{_PROBE_FILE}"
    took_ms: list[float] = []
    try:
        file = DiskFiles().open(name, create=True)
        try:
            for number in range(_SYNC_COUNT):
                file.write_at(number * 4096, bytes(4096))
                started = time.perf_counter()
                file.sync()
                took_ms.append((time.perf_counter() - started) * 1000)
        finally:
            file.close()
            os.unlink(name)
    except OSError as error:
        return problem("disk sync", f"{path} cannot be written to: {error.strerror}.")
    median_ms = statistics.median(took_ms)
    if median_ms > SLOW_SYNC_MS:
        return note(
            "disk sync",
            f"Syncing the disk of {path} takes {median_ms:.0f} ms, so acks=all takes as long.",
        )
    return good("disk sync", f"Syncing the disk of {path} takes {median_ms:.1f} ms.")
