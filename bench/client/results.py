"""What was found: for each case the runs of every client, and how ours compare."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from bench.bench_run import Outcome
from bench.broker.results import Goal, Row, full_spread
from bench.broker.sizes import MEGABYTE
from bench.client.cases import Case
from bench.client.contenders import TITLES
from bench.rounds import Comparison, Spread


class ClientFigures(NamedTuple):
    """One run of a client, and what it cost the client and the broker."""

    record_count: int
    seconds: float
    cpu_s: float
    resident_bytes: float
    broker_cpu_s: float

    @property
    def records_per_s(self) -> float:
        return self.record_count / self.seconds

    @property
    def cpu_us_per_record(self) -> float:
        return self.cpu_s * 1e6 / self.record_count

    @property
    def broker_cores(self) -> float:
        return self.broker_cpu_s / self.seconds


@dataclass(slots=True)
class CaseResults:
    case: Case
    #: By the client's job, one of each round.
    runs: dict[str, list[ClientFigures]] = field(default_factory=dict)

    def speed(self, job: str) -> Spread:
        return full_spread([run.records_per_s for run in self.runs[job]])

    def cpu_us(self, job: str) -> float:
        return statistics.median(run.cpu_us_per_record for run in self.runs[job])

    def resident_megabytes(self, job: str) -> float:
        return max(run.resident_bytes for run in self.runs[job]) / MEGABYTE

    def broker_cores(self, job: str) -> float:
        return statistics.median(run.broker_cores for run in self.runs[job])

    def rows(self) -> list[ClientRow]:
        """Ours beside each peer; a client that failed is left out."""
        found = []
        for match in self.case.matches:
            peers = [job for job in match.peers if job in self.runs]
            if match.ours not in self.runs or not peers:
                continue
            quickest = max(peers, key=lambda job: self.speed(job).median)
            values = Comparison(
                [run.records_per_s for run in self.runs[match.ours]],
                [run.records_per_s for run in self.runs[quickest]],
            )
            found.append(
                ClientRow(
                    Row(self.case.title, TITLES[match.ours], "records/s", values, match.goal),
                    TITLES[quickest],
                )
            )
        return found

    def as_json(self) -> dict[str, Any]:
        return {
            "case": self.case.title,
            "runs": {
                job: [{**run._asdict(), "records_per_s": run.records_per_s} for run in runs]
                for job, runs in self.runs.items()
            },
            "comparisons": [
                {**row.row.as_json(), "peer_name": row.peer_name} for row in self.rows()
            ],
        }


class ClientRow(NamedTuple):
    row: Row
    peer_name: str

    @property
    def goal(self) -> Goal | None:
        return self.row.goal


@dataclass(slots=True)
class ClientResults(Outcome):
    cases: list[CaseResults] = field(default_factory=list)
