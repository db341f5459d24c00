"""Where the broker's time goes: `python -m bench.broker.profile produce` and look at the functions.

A Headwater server runs under one load while py-spy looks at its stack many times a second, from
outside, so that the server runs as it always does. Two tables come out: what the processor was in
(self), and what was on the stack at all (total). Samples where the server waits are left out, and
the share of samples in which it worked is told.
"""

from __future__ import annotations

import argparse
import contextlib
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from bench.broker import librdkafka_client
from bench.broker.process_usage import cpu_seconds
from bench.broker.request_load import RequestLoad, frames_for_all, produce_frame
from bench.broker.servers import HeadwaterServer, Server
from headwater.java.processes import kill_process

_PARTITION_COUNT = 6
_RATE_PER_S = 200
_TOPIC = "profiled"
#: Enough that no load comes to its end while it is looked at.
_MANY = 10**9
_CONSUMED_BATCHES = 30_000
_EVERYTHING = 0.9
#: A thread that waits for work, which the sampler takes for one that works.
_IDLE_THREAD = "_worker (concurrent/futures/thread.py"

#: Puts a server under load until the event is set.
Load = Callable[[Server, int, threading.Event], None]


class Profile(NamedTuple):
    """Shares of the samples in which the server worked, by function."""

    sample_count: int
    self_shares: list[tuple[str, float]]
    total_shares: list[tuple[str, float]]


def produce(server: Server, record_size_bytes: int, end: threading.Event) -> None:
    """librdkafka sends batches with acks=1."""
    process = librdkafka_client.start_job(
        "produce",
        bootstrap=server.bootstrap,
        topic=_TOPIC,
        record_size_bytes=record_size_bytes,
        record_count=_MANY,
        settings={"acks": "1"},
    )
    end.wait()
    kill_process(process)


def consume(server: Server, record_size_bytes: int, end: threading.Event) -> None:
    """librdkafka reads a topic from its start, again and again."""
    frames = frames_for_all(_TOPIC, _PARTITION_COUNT, record_size_bytes)
    with RequestLoad(server.port, frames, connection_count=1, in_flight=5) as load:
        load.run(600.0, _CONSUMED_BATCHES)
    with server.connect() as client:
        record_count = client.record_count(_TOPIC, _PARTITION_COUNT)
    while not end.is_set():
        librdkafka_client.run_job(
            "consume",
            bootstrap=server.bootstrap,
            topic=_TOPIC,
            partition_count=_PARTITION_COUNT,
            record_count=record_count,
        )


def batches(server: Server, record_size_bytes: int, end: threading.Event) -> None:
    """Bare requests with one batch of 16 KB each."""
    _send(server, frames_for_all(_TOPIC, _PARTITION_COUNT, record_size_bytes), end)


def requests(server: Server, record_size_bytes: int, end: threading.Event) -> None:
    """Bare requests with one record each."""
    _send(server, [produce_frame(_TOPIC, 0, record_size_bytes, 1)], end)


def _send(server: Server, frames: Sequence[bytes], end: threading.Event) -> None:
    with RequestLoad(server.port, frames, connection_count=4, in_flight=5) as load:
        while not end.is_set():
            count = load.run(1.0)
            print(f"{count.answer_count / count.seconds:,.0f} requests/s", file=sys.stderr)


LOADS: dict[str, Load] = {
    "produce": produce,
    "consume": consume,
    "batches": batches,
    "requests": requests,
}


def profile(
    load: Load, seconds: float, *, record_size_bytes: int, native: bool
) -> tuple[Profile, float]:
    """The profile of a server under load, and how many cores it used."""
    with tempfile.TemporaryDirectory() as parent:
        server = HeadwaterServer(Path(parent) / "server")
        end = threading.Event()
        thread = threading.Thread(target=load, args=(server, record_size_bytes, end))
        try:
            server.start()
            with server.connect() as client:
                client.create_topic(_TOPIC, _PARTITION_COUNT)
            thread.start()
            time.sleep(min(2.0, seconds))
            before_s, start_s = cpu_seconds(server.pid), time.perf_counter()
            stacks = _sample(server.pid, seconds, Path(parent) / "stacks", native=native)
            cores = (cpu_seconds(server.pid) - before_s) / (time.perf_counter() - start_s)
        finally:
            end.set()
            with contextlib.suppress(RuntimeError):  # It was never started.
                thread.join()
            server.kill()
    return summarise(stacks), cores


def _sample(pid: int, seconds: float, path: Path, *, native: bool) -> str:
    sampler = shutil.which("py-spy", path=str(Path(sys.executable).parent)) or "py-spy"
    subprocess.run(
        [
            *(sampler, "record", "--pid", str(pid), "--duration", str(max(1, round(seconds)))),
            *("--rate", str(_RATE_PER_S), "--function", "--format", "raw", "--output", str(path)),
            *(["--native"] if native else []),
        ],
        check=True,
        capture_output=True,
    )
    return path.read_text()


def summarise(stacks: str) -> Profile:
    """What py-spy's raw format comes to: lines of frames, outermost first, and a count."""
    own: Counter[str] = Counter()
    total: Counter[str] = Counter()
    sample_count = 0
    for line in stacks.splitlines():
        text, _, number = line.rpartition(" ")
        frames = text.split(";")
        if any(_IDLE_THREAD in frame for frame in frames):
            continue
        count = int(number)
        sample_count += count
        own[frames[-1]] += count
        # A function that calls itself counts once.
        for frame in set(frames):
            total[frame] += count
    own_shares, total_shares = (
        [(name, count / sample_count) for name, count in counter.most_common()]
        for counter in (own, total)
    )
    # What everything runs in tells nothing.
    inner_shares = [each for each in total_shares if each[1] < _EVERYTHING]
    return Profile(sample_count, own_shares, inner_shares)


def _print_table(title: str, shares: Sequence[tuple[str, float]], line_count: int) -> None:
    print(f"\n{title}")
    for name, share in shares[:line_count]:
        print(f"  {share:6.1%}  {name}")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="profile", description="Where the broker's time goes.")
    parser.add_argument("load", choices=LOADS, help="what the server is to do")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--record-size", type=int, default=100, metavar="BYTES")
    parser.add_argument("--lines", type=int, default=25, help="how many functions to show")
    parser.add_argument(
        "--native", action="store_true", help="show functions in C too; slows the server down"
    )
    options = parser.parse_args(arguments)
    found, cores = profile(
        LOADS[options.load],
        options.seconds,
        record_size_bytes=options.record_size,
        native=options.native,
    )
    print(f"{found.sample_count:,} samples at work, {cores:.2f} cores")
    _print_table("Self", found.self_shares, options.lines)
    _print_table("Total", found.total_shares, options.lines)
    return 0


if __name__ == "__main__":
    sys.exit(main())
