"""What a worker tells of itself: counts since it began, and how it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class WorkerMetrics(NamedTuple):
    #: Records whose handler returned.
    handled_count: int
    #: Times that a handler raised, or a record could not be deserialized.
    failed_count: int
    #: Records sent to the retry topic, to be tried again.
    retried_count: int
    #: Records sent there as dead letters.
    dead_count: int
    #: Times that a record was tried again without leaving this process.
    in_process_retry_count: int
    #: Records that are being handled, or wait for it.
    in_flight: int
    #: Failed records that are not written yet.
    unsettled: int
    #: Partitions that are not read at the moment, since too much of them is under way.
    full_partitions: int
    #: "closed", as it should be, "open" or "probing".
    circuit: str
    circuit_opened_count: int
    commit_count: int
    transaction_count: int


class Health(NamedTuple):
    is_healthy: bool
    #: "new", "running", "stopping" or "ended".
    state: str
    #: What is wrong; empty if nothing is.
    reason: str


@dataclass(slots=True)
class Figures:
    """The counts; owned by `Work`, changed under its lock."""

    handled_count: int = 0
    failed_count: int = 0
    retried_count: int = 0
    dead_count: int = 0
    in_process_retry_count: int = 0
    commit_count: int = 0
    transaction_count: int = 0
