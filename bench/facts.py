"""What a benchmark's figures came from, in the words that reports begin with."""

from __future__ import annotations

import os
from importlib import metadata

from bench.machine import Machine
from headwater import __version__
from headwater.base.python_build import python_build

#: A machine with more to do than this before the run starts gives figures that mean little.
LOAD_MAX = 0.5


def machine_fact(directory: str) -> str:
    """The machine and the disk of `directory`, and whether there is other work at this moment."""
    text = Machine.describe(directory).title
    busy = os.getloadavg()[0]
    if busy > LOAD_MAX:
        wanted = f"{busy:.1f} processes wanted to run in the minute before the start"
        text += f"; busy with other work: {wanted}"
    return text


def headwater_fact(*packages: str) -> str:
    """Our version, Python's, and those of the packages that matter to speed."""
    used = (f", {package} {package_version(package)}" for package in packages)
    return f"{__version__} on {python_build()}{''.join(used)}"


def package_version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "(not installed)"


def librdkafka_version() -> str:
    try:
        from confluent_kafka import libversion
    except ImportError:
        return "(not installed)"
    return str(libversion()[0])
