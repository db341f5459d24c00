"""A Python for Spark's workers that starts in a third of the time.

Spark puts a zip archive of PySpark first on the module path of every Python process it starts. The
archive has no byte code, so each process compiles the modules that it needs: one second of work,
where importing the installed package, which is the same, takes a third of that. Each source of a
stream and each commit of a sink is such a process, and Spark gives up on one that has not connected
after ten seconds.

So for a local master the workers' Python is a script that takes the archive off the path and runs
the interpreter. On a cluster the workers' Python is the cluster's own.
"""

from __future__ import annotations

import hashlib
import shlex
from pathlib import Path

from headwater.java.cached_file import cached_file


def quick_python(interpreter: str) -> Path:
    """The script for `interpreter`, which is made once, in the cache."""
    text = quick_python_script(interpreter)
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    return cached_file(f"python-{digest}", text, executable=True)


def quick_python_script(interpreter: str) -> str:
    """A shell script that runs `interpreter` without Spark's archives on its path."""
    return (
        "#!/bin/sh\n"
        "set -f\n"
        "kept=\n"
        "IFS=:\n"
        "for place in $PYTHONPATH; do\n"
        '    case "$place" in\n'
        "        */python/lib/pyspark.zip | */python/lib/py4j-*.zip) ;;\n"
        '        *) kept="$kept${kept:+:}$place" ;;\n'
        "    esac\n"
        "done\n"
        "unset IFS\n"
        "PYTHONPATH=$kept\n"
        "export PYTHONPATH\n"
        f'exec {shlex.quote(interpreter)} "$@"\n'
    )
