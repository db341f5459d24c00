"""Paths of nodes: `/` and, below it, names separated by slashes."""

from headwater.cluster.store.errors import InvalidPathError

ROOT = "/"


def split_path(path: str) -> list[str]:
    """The names on the way from the root to the node; raises InvalidPathError."""
    if path == ROOT:
        return []
    names = path.split("/")
    # The text in front of the first slash is empty; no name behind it may be.
    if names[0] or "" in names[1:] or len(names) < 2 or "." in names or ".." in names:
        raise InvalidPathError(path)
    if "\0" in path:
        raise InvalidPathError(path)
    return names[1:]


def parent_of(path: str) -> str:
    """The path of the node that holds this one."""
    return path[: path.rindex("/")] or ROOT
