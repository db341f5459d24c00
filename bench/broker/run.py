"""One run of the benchmark: what every measurement is given, and how the sides take turns."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from bench.bench_run import BenchRun
from bench.broker.java_clients import JavaClients
from bench.broker.results import Results
from bench.broker.servers import Pair
from bench.broker.sizes import Sizes

Side = TypeVar("Side")
Value = TypeVar("Value")

CLIENTS = ("java", "librdkafka")


@dataclass(slots=True)
class Run(BenchRun[Results]):
    pair: Pair
    sizes: Sizes
    #: Of `CLIENTS`, those to measure with.
    clients: tuple[str, ...] = CLIENTS
    java: JavaClients = field(default_factory=JavaClients)


def take_turns(
    sides: tuple[Side, ...], round_count: int, measure: Callable[[Side], Value]
) -> tuple[list[Value], list[Value]]:
    """What each side came to in each round; the one that goes first changes."""
    values: tuple[list[Value], list[Value]] = ([], [])
    for number in range(round_count):
        for side in (0, 1) if number % 2 == 0 else (1, 0):
            settle_disk()
            values[side].append(measure(sides[side]))
    return values


def settle_disk() -> None:
    """Let the disk finish with what was written before, so that it is not charged to the next."""
    os.sync()
