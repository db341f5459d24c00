"""What the benchmarks' commands have in common: their options, their files, and how a run ends.

Ctrl-C or SIGTERM ends a run with the tables of what was measured until then. The exit code is 0
whether goals are met or not, because a benchmark informs and a busy machine is easily wrong, and 1
if something could not be measured.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import tempfile
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Generic

from bench.bench_run import AnyOutcome


class BenchParser(argparse.ArgumentParser):
    """Knows options that several commands have."""

    def add_sizes(self, full: Any, quick: Any, tiny: Any, *, times: tuple[str, str]) -> None:
        """`--quick` and `--tiny`, with the time each takes; `options.sizes` is what was chosen."""
        group = self.add_mutually_exclusive_group()
        add = partial(group.add_argument, dest="sizes", action="store_const", default=full)
        add("--quick", const=quick, help=times[0])
        add("--tiny", const=tiny, help=f"{times[1]}; figures mean nothing")

    def add_choice(self, option: str, noun: str, names: Collection[str]) -> None:
        """An option that leaves out all but what it names."""
        self.add_argument(
            option,
            action="append",
            choices=names,
            metavar="NAME",
            help=f"only this {noun}, may be repeated: {', '.join(names)}",
        )

    def add_directories(self, data: str) -> None:
        """`--directory` and `--output`, for `made_directories`."""
        place = f"where to put {data} (default: %(default)s)"
        self.add_argument("--directory", default=f"build/{self.prog}", help=place)
        self.add_argument(
            "--output", metavar="DIRECTORY", help="where to write the results (default: the same)"
        )


def made_directories(options: argparse.Namespace) -> tuple[Path, Path]:
    """Where the data goes and where the results go; both exist."""
    directory, output = Path(options.directory), Path(options.output or options.directory)
    for path in (output, directory):
        path.mkdir(parents=True, exist_ok=True)
    return directory, output


@dataclass(frozen=True, slots=True)
class BenchReport(Generic[AnyOutcome]):
    """The results as text for people, as JSON for programs, and as a picture."""

    #: That of the files, without their endings.
    name: str
    output: Path
    results: AnyOutcome
    #: What was measured with what, and where.
    facts: dict[str, str]
    as_markdown: Callable[[AnyOutcome, dict[str, str]], str]
    as_json: Callable[[AnyOutcome, dict[str, str]], dict[str, Any]]
    draw: Callable[[AnyOutcome, Path], None]

    def save(self) -> None:
        """Write what there is so far."""
        (self.output / f"{self.name}.md").write_text(self.as_markdown(self.results, self.facts))
        found = self.as_json(self.results, self.facts)
        (self.output / f"{self.name}.json").write_text(json.dumps(found, indent=2) + "\n")
        self.draw(self.results, self.output / f"{self.name}.png")

    def show(self) -> None:
        print(self.as_markdown(self.results, self.facts))
        names = ", ".join(f"{self.name}.{ending}" for ending in ("md", "json", "png"))
        print(f"Written to {self.output}: {names}", file=sys.stderr)


def run_bench(
    report: BenchReport[AnyOutcome], directory: Path, measure: Callable[[Path], None]
) -> int:
    """Measure in a fresh directory inside of `directory`, and report; returns the exit code."""
    previous = signal.signal(signal.SIGTERM, _interrupt)
    try:
        with tempfile.TemporaryDirectory(dir=directory, ignore_cleanup_errors=True) as scratch:
            measure(Path(scratch).absolute())
    except KeyboardInterrupt:
        report.results.is_interrupted = True
    finally:
        signal.signal(signal.SIGTERM, previous)
        report.save()
    report.show()
    return 1 if report.results.failures or report.results.is_interrupted else 0


def _interrupt(_number: int, _frame: object) -> None:
    raise KeyboardInterrupt
