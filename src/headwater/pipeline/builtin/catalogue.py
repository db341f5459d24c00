"""Which pipelines are built in, and where their files are."""

from __future__ import annotations

import difflib
from importlib.resources import files
from pathlib import Path
from typing import Final

from headwater.base.errors import InvalidConfigError

_ENDING: Final = ".yaml"


def builtin_names() -> tuple[str, ...]:
    """The names that `headwater pipeline run` and `show` take."""
    names = [entry.name for entry in files(__package__).iterdir()]
    return tuple(sorted(name.removesuffix(_ENDING) for name in names if name.endswith(_ENDING)))


def builtin_path(name: str) -> Path:
    """The file of a built-in pipeline."""
    names = builtin_names()
    if name not in names:
        near = difflib.get_close_matches(name, names, n=1)
        advice = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(names)}."
        raise InvalidConfigError(f"There is no built-in pipeline {name!r}; {advice}")
    return Path(str(files(__package__).joinpath(name + _ENDING)))
