"""`python -m headwater.pipeline.demo`, which is what `make demo` runs."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from rich.console import Console

from headwater.base.errors import KafkaError
from headwater.pipeline.demo.run import DemoOptions, run_demo


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo; 0 if all is right, 1 if not, 130 after Ctrl-C."""
    options = _parse(arguments)
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        return run_demo(options, Console())
    except KeyboardInterrupt:
        print("\nStopped; nothing is left behind.", file=sys.stderr)
        return 130
    except KafkaError as failure:
        if os.environ.get("HEADWATER_DEBUG") == "1":
            raise
        print(f"headwater: {failure}", file=sys.stderr)
        return 1


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _parse(arguments: Sequence[str] | None) -> DemoOptions:
    defaults = DemoOptions()
    parser = argparse.ArgumentParser(
        prog="demo",
        description="A broker, a shop's stream and three pipelines on Spark, in under 3 minutes.",
    )
    parser.add_argument("--seed", type=int, default=defaults.seed, help="of the shop's stream")
    parser.add_argument(
        "--orders",
        type=int,
        default=defaults.order_count,
        help="how many, at least 200 (default: %(default)s)",
    )
    parser.add_argument(
        "--seconds",
        type=float,
        default=defaults.seconds,
        help="how long the first wave takes (default: %(default)s)",
    )
    parser.add_argument("--chart", type=Path, default=defaults.chart, help="the PNG to write")
    parser.add_argument(
        "--keep",
        type=Path,
        nargs="?",
        const=Path("headwater-demo"),
        metavar="DIR",
        help="keep the broker's data and the lake, in ./headwater-demo or DIR, which must be new",
    )
    parser.add_argument("--master", default=defaults.master, help="of Spark (default: %(default)s)")
    parser.add_argument(
        "--conf",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a setting of Spark; may be repeated",
    )
    given = parser.parse_args(arguments)
    if given.orders < 200:
        parser.error("--orders must be at least 200: fewer have no second wave to speak of.")
    if given.keep is not None and given.keep.exists() and any(given.keep.iterdir()):
        parser.error(f"{given.keep} is not empty; name another place with --keep DIR.")
    if any("=" not in text for text in given.conf):
        parser.error("--conf takes NAME=VALUE.")
    return DemoOptions(
        seed=given.seed,
        order_count=given.orders,
        seconds=given.seconds,
        directory=given.keep,
        chart=given.chart,
        master=given.master,
        configs=dict(text.split("=", 1) for text in given.conf),
    )


if __name__ == "__main__":
    sys.exit(main())
