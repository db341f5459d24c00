"""`make soak`: random campaigns against the engine, the broker and clusters, as long as wanted.

A campaign is a function of a seed that raises if anything is wrong, so that one number brings a
failure back. Every seed goes through every campaign chosen, in two processes, until the time is up,
a seed fails or Ctrl-C. A failure is reported with its seed first and makes the exit code 1; so does
a seed that does not come to an end, or that ends its process.

`--archive N` is another soak: N records archived by Spark and proven (`archive_soak`).
"""

from __future__ import annotations

import argparse
import itertools
import logging
import multiprocessing
import random
import signal
import sys
import traceback
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from time import monotonic
from types import FrameType
from typing import NamedTuple

from bench.bench_command import BenchParser
from headwater.sim.campaigns.audit import AuditCampaign
from headwater.sim.campaigns.broker import BrokerCampaign
from headwater.sim.campaigns.cluster import ClusterCampaign
from headwater.sim.campaigns.cluster_copies import ClusterCopyCampaign
from headwater.sim.campaigns.delays.campaign import DelayCampaign
from headwater.sim.campaigns.delays.log_campaign import DelayLogCampaign
from headwater.sim.campaigns.directory import DirectoryCampaign
from headwater.sim.campaigns.drains import DrainCampaign
from headwater.sim.campaigns.exactly_once import ExactlyOnceCampaign
from headwater.sim.campaigns.log import LogCampaign, run_with_failing_disk
from headwater.sim.campaigns.reassignments import ReassignmentCampaign
from headwater.sim.campaigns.redrives import RedriveCampaign
from headwater.sim.campaigns.retries import RetryCampaign
from headwater.sim.campaigns.transactions import TransactionCampaign
from headwater.sim.campaigns.workers import WorkerCampaign
from headwater.sim.hostile.campaign import run_fuzz

#: Runs one seed and returns how many crashes it survived.
Campaign = Callable[[int], int]

_STEPS_PER_SEED = 150
_STEPS_BEFORE_FULL_DISK = 20
#: So that each API and version comes up about twice.
_CASES_PER_SEED = 800
_SEED_SECONDS_MAX = 300.0
_LOOK_SECONDS = 0.5
#: Where no terminal shows a live line.
_PLAIN_LINE_SECONDS = 60.0


def run_log(seed: int) -> int:
    """One log through appends, truncations, retention and power failures."""
    campaign = LogCampaign(seed)
    campaign.run(_STEPS_PER_SEED)
    return campaign.crash_count


def run_full_disk(seed: int) -> int:
    """A shorter one, and then a disk without room."""
    campaign = LogCampaign(seed)
    campaign.run(_STEPS_BEFORE_FULL_DISK)
    try:
        run_with_failing_disk(campaign)
    except Exception as error:
        raise AssertionError(f"seed {seed} on a full disk\n{error!r}") from error
    return campaign.crash_count


def run_transactions(seed: int) -> int:
    """The same with transactions, and with writes that fail now and then."""
    campaign = TransactionCampaign(seed)
    campaign.run(60)
    return campaign.crash_count


def run_directories(seed: int) -> int:
    """A broker's directories: logs come, go and move while the power fails."""
    campaign = DirectoryCampaign(seed)
    campaign.run(80)
    return campaign.crash_count


def run_broker(seed: int) -> int:
    """A broker with its clients in a simulated world in which everything fails."""
    campaign = BrokerCampaign(seed)
    _run_in_world(campaign.run)
    return campaign.crash_count


def run_exactly_once(seed: int) -> int:
    """The same with groups and transactions: copies that must come out once."""
    campaign = ExactlyOnceCampaign(seed)
    _run_in_world(campaign.run)
    return campaign.crash_count


def run_cluster(seed: int) -> int:
    """Three brokers and their store: elections, partitions of the network, power failures."""
    campaign = ClusterCampaign(seed)
    _run_in_world(lambda: campaign.run(event_count=5))
    return campaign.crash_count


def run_reassignments(seed: int) -> int:
    """Four brokers, between which partitions move, throttled and cancelled, meanwhile."""
    campaign = ReassignmentCampaign(seed)
    _run_in_world(lambda: campaign.run(event_count=5))
    return campaign.crash_count


def run_drains(seed: int) -> int:
    """The same, and in the end a broker is emptied."""
    campaign = DrainCampaign(seed)
    _run_in_world(lambda: campaign.run(event_count=4))
    return campaign.crash_count


def run_audit(seed: int) -> int:
    """Clusters, with what the audit tells compared with the logs."""
    campaign = AuditCampaign(seed)
    _run_in_world(lambda: campaign.run(event_count=8))
    return campaign.crash_count


def run_cluster_copies(seed: int) -> int:
    """The same with groups and transactions, while their coordinators move."""
    campaign = ClusterCopyCampaign(seed)
    _run_in_world(lambda: campaign.run(event_count=12))
    return campaign.cluster.crash_count


def run_delay_log(seed: int) -> int:
    """The delayed messages of one log: sent, cancelled, delivered, moved, read anew."""
    campaign = DelayLogCampaign(seed)
    campaign.run(_STEPS_PER_SEED)
    return campaign.crash_count


def run_delays(seed: int) -> int:
    """Delayed messages on three brokers: once, in order, never early, whatever happens."""
    campaign = DelayCampaign(seed)
    _run_in_world(lambda: campaign.run(event_count=7))
    return campaign.crash_count


def run_retries(seed: int) -> int:
    """Retry topics on three brokers: each failed record comes back, or is a dead letter, once."""
    campaign = RetryCampaign(seed)
    _run_in_world(lambda: campaign.run(event_count=6))
    return campaign.crash_count


def run_workers(seed: int) -> int:
    """Workers that fail and are killed on three brokers: one outcome for each record."""
    campaign = WorkerCampaign(seed)
    _run_in_world(campaign.run)
    return campaign.crash_count


def run_redrives(seed: int) -> int:
    """The same with dead letters sent back by programs that are killed: each letter once."""
    campaign = RedriveCampaign(seed)
    _run_in_world(campaign.run)
    return campaign.crash_count


def run_hostile(seed: int) -> int:
    """A broker process under peers that send broken requests of every API and version."""
    run_fuzz(seed, _CASES_PER_SEED)
    return 0


def _run_in_world(run: Callable[[], object]) -> None:
    previous = logging.root.manager.disable
    # What the broker logs with a traceback is a failure of its own; it goes nowhere else.
    logging.disable(logging.NOTSET)
    try:
        run()
    finally:
        logging.disable(previous)


#: What `--campaign` names. A campaign must be found by name in another process.
CAMPAIGNS: dict[str, Campaign] = {
    "log": run_log,
    "full-disk": run_full_disk,
    "transactions": run_transactions,
    "directories": run_directories,
    "broker": run_broker,
    "exactly-once": run_exactly_once,
    "cluster": run_cluster,
    "reassignments": run_reassignments,
    "drains": run_drains,
    "audit": run_audit,
    "cluster-copies": run_cluster_copies,
    "delay-log": run_delay_log,
    "delays": run_delays,
    "retries": run_retries,
    "workers": run_workers,
    "redrives": run_redrives,
    "hostile": run_hostile,
}


class Task(NamedTuple):
    name: str
    campaign: Campaign
    seed: int


class Outcome(NamedTuple):
    task: Task
    crash_count: int
    #: The traceback if the seed failed.
    failure: str | None


class SeedTimeout(Exception):
    """A seed took so long that it will hardly end."""


def run_task(task: Task) -> Outcome:
    """In a worker process: one seed through one campaign."""
    previous = signal.signal(signal.SIGALRM, _give_up)
    signal.setitimer(signal.ITIMER_REAL, _SEED_SECONDS_MAX)
    try:
        return Outcome(task, task.campaign(task.seed), None)
    except Exception:
        return Outcome(task, 0, traceback.format_exc())
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


def _give_up(_number: int, _frame: FrameType | None) -> None:
    raise SeedTimeout(f"The seed did not come to an end within {_SEED_SECONDS_MAX:g} s.")


def _prepare_worker() -> None:
    # Ctrl-C reaches all processes of the terminal; only the parent decides what it means. Recovery
    # warns of all that it cuts off, which is what campaigns are made of.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    logging.disable(logging.CRITICAL)


@dataclass(slots=True)
class Progress:
    """What has been done so far."""

    start: float = field(default_factory=monotonic)
    seed_count: int = 0
    crash_count: int = 0
    shown_at: float = field(default_factory=monotonic)

    def take(self, outcome: Outcome) -> None:
        self.seed_count += 1
        self.crash_count += outcome.crash_count

    def show(self) -> None:
        """Keep the terminal's line up to date; elsewhere, write a line now and then."""
        if sys.stderr.isatty():
            print(f"\r{self}   ", end="", file=sys.stderr, flush=True)
        elif monotonic() - self.shown_at >= _PLAIN_LINE_SECONDS:
            print(self, file=sys.stderr, flush=True)
            self.shown_at = monotonic()

    def __str__(self) -> str:
        seconds = max(monotonic() - self.start, 0.001)
        return (
            f"{self.seed_count:,} seeds, {self.crash_count:,} crashes survived, "
            f"{self.seed_count / seconds:.1f} seeds/s, {seconds / 60:.1f} min"
        )


def soak(tasks: Iterator[Task], *, worker_count: int, deadline: float | None) -> int:
    """Run tasks until they or the time run out; returns the exit code."""
    progress = Progress()
    context = multiprocessing.get_context("spawn")
    running: dict[Future[Outcome], Task] = {}
    failed: Outcome | None = None
    with ProcessPoolExecutor(worker_count, context, _prepare_worker) as executor:
        try:
            while failed is None:
                if deadline is None or monotonic() < deadline:
                    # One more than there are workers, so that none waits for this process.
                    for task in itertools.islice(tasks, worker_count + 1 - len(running)):
                        running[executor.submit(run_task, task)] = task
                if not running:
                    break
                done, _ = wait(running, _LOOK_SECONDS, FIRST_COMPLETED)
                for future in done:
                    outcome = _outcome(future, running.pop(future), running.values())
                    progress.take(outcome)
                    if outcome.failure is not None and failed is None:
                        failed = outcome
                progress.show()
        except KeyboardInterrupt:
            print("\nStopped.", file=sys.stderr)
        executor.shutdown(wait=True, cancel_futures=True)
    if failed is not None:
        _report(failed)
    print(f"\n{progress}", file=sys.stderr)
    return 0 if failed is None else 1


def _outcome(future: Future[Outcome], task: Task, beside: Collection[Task]) -> Outcome:
    try:
        return future.result()
    except BrokenProcessPool:
        others = ", ".join(f"{other.name} {other.seed}" for other in beside) or "none"
        return Outcome(task, 0, f"A worker process ended. Under way besides this seed: {others}.")


def _report(outcome: Outcome) -> None:
    name, _, seed = outcome.task
    again = f'make soak ARGS="--campaign {name} --seed {seed} --count 1"'
    if sys.stderr.isatty():
        print(file=sys.stderr)
    print(f"seed {seed} fails in the campaign {name}; again: {again}")
    print(outcome.failure, flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parse(arguments)
    if options.archive is not None:
        # Imported here, because campaigns need neither Spark nor Arrow.
        from bench.archive_soak import soak_archive

        return soak_archive(options.archive)
    first_seed = random.SystemRandom().randrange(10**9) if options.seed is None else options.seed
    seeds = itertools.islice(itertools.count(first_seed), options.count)
    names = options.campaign or list(CAMPAIGNS)
    print(f"Campaigns {', '.join(names)} from seed {first_seed} on.", file=sys.stderr)
    deadline = None if options.minutes is None else monotonic() + 60 * options.minutes
    return soak(
        (Task(name, CAMPAIGNS[name], seed) for seed in seeds for name in names),
        worker_count=options.workers,
        deadline=deadline,
    )


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = BenchParser(
        prog="soak", description="Random campaigns against the storage engine and the broker."
    )
    parser.add_argument("--minutes", type=float, help="how long (default: until Ctrl-C)")
    parser.add_argument("--seed", type=int, help="the first seed (default: a random one)")
    parser.add_argument("--count", type=int, help="how many seeds (default: no end)")
    parser.add_choice("--campaign", "one", CAMPAIGNS)
    parser.add_argument("--workers", type=int, default=2, help="processes (default: %(default)s)")
    parser.add_argument(
        "--archive",
        type=int,
        metavar="N",
        help="no campaigns, but N records archived by Spark and verified, such as 10000000",
    )
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
