"""The path of a table or a checkpoint on a file system of this machine."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import urlparse

from headwater.pipeline.lake.errors import LakeError


def local_path(path: str | os.PathLike[str]) -> str:
    """The absolute path; refuses what is not on a local or mounted file system."""
    text = os.fspath(path)
    scheme = urlparse(text).scheme
    if scheme == "file":
        text = urlparse(text).path
    elif "://" in text:
        raise LakeError(
            f"A lake needs a local or mounted directory, and {text!r} is on {scheme}: commits need "
            "links that fail if the name is taken, which object stores do not have."
        )
    return str(Path(text).expanduser().absolute())
