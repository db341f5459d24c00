"""How many files this process may open.

Systems start programs with a low limit that each may raise by itself, up to a higher one: the low
one protects old programs that cannot count further. A broker raises it.
"""

from __future__ import annotations

import contextlib
import resource
from typing import Final

#: A broker that may open fewer is short of them: connections and many segments have one each.
DESCRIPTORS_MIN: Final = 4_096
#: More would be of no use, and some systems do not take "without a limit".
_WANTED: Final = 1_048_576


def raise_open_files_limit() -> int:
    """Raise the limit as far as this process may, and say how high it is now."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = reachable(hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        # Refused where the system has a lower limit of its own; then it stays as it is.
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return reachable(resource.getrlimit(resource.RLIMIT_NOFILE)[0])


def reachable(limit: int) -> int:
    """As a number, also where there is no limit."""
    return _WANTED if limit == resource.RLIM_INFINITY else min(limit, _WANTED)
