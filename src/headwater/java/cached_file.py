"""Small files that are made from a text and kept in the cache: scripts, and configurations.

Several processes may want the same one at once, so a file is written whole under another name, and
then takes its place.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from headwater.java.installation import cache_root


def cached_file(name: str, text: str, *, executable: bool = False) -> Path:
    """The file `name` in the cache with this `text`; it is written if it is not there like that."""
    path = cache_root() / name
    if path.exists() and path.read_text() == text:
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False) as fresh:
        fresh.write(text)
    os.chmod(fresh.name, 0o755 if executable else 0o644)
    os.replace(fresh.name, path)
    return path
