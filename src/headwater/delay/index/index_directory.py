"""The files of an index in the directory of its partition: which they are, cutting, removing."""

from __future__ import annotations

import contextlib

from headwater.delay.index import checkpoint as checkpoints
from headwater.delay.index import delay_ids, homes
from headwater.delay.index.checkpoint import IndexCheckpoint
from headwater.storage.disk.files import TEMPORARY_SUFFIX, FileSystem

_SUFFIXES = (
    homes.SUFFIX,
    delay_ids.SUFFIX,
    checkpoints.NAME,
    checkpoints.NAME + TEMPORARY_SUFFIX,
)


def is_index_file(name: str) -> bool:
    """Whether a file of this name in the directory of a partition belongs to its index."""
    return name.endswith(_SUFFIXES)


def index_files(files: FileSystem, directory: str) -> list[str]:
    return [name for name in files.list_dir(directory) if is_index_file(name)]


def cut_to(files: FileSystem, directory: str, checkpoint: IndexCheckpoint) -> bool:
    """Take away whatever came after a checkpoint; False if something of its own is missing."""
    sizes = checkpoint.sizes()
    for name, size in sizes.items():
        path = f"{directory}/{name}"
        found = files.size(path) if files.exists(path) else -1
        if found < size:
            return False
        if found > size:
            file = files.open(path)
            try:
                file.truncate(size)
            finally:
                file.close()
    for name in index_files(files, directory):
        if name not in sizes and name != checkpoints.NAME:
            files.remove(f"{directory}/{name}")
    return True


def remove_all(files: FileSystem, directory: str) -> None:
    names = index_files(files, directory)
    if checkpoints.NAME in names:
        # It must be gone for good before its files go: others may get their names.
        files.remove(f"{directory}/{checkpoints.NAME}")
        files.sync_dir(directory)
    for name in names:
        with contextlib.suppress(FileNotFoundError):
            files.remove(f"{directory}/{name}")
