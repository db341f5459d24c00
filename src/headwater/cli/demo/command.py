"""`headwater demo`: a broker, a shop's stream and three pipelines on Spark, checked at the end.

Spark and the demo are imported when the command runs, so that `--help` answers at once and without
them.
"""

from __future__ import annotations

import importlib.util
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import Annotated, Final

import typer

from headwater.base.extras import missing_package

app = typer.Typer(pretty_exceptions_enable=False)

EXIT_INTERRUPTED: Final = 130
ORDERS_MIN: Final = 200
KEEP_DEFAULT: Final = "headwater-demo"
#: What it cannot do without of the extra `demo`.
PACKAGES: Final = ("pyspark", "pyarrow", "pandas", "yaml", "fastavro")

HELP = """\
See it all at work, in about 3 minutes: a broker, a shop's orders and payments, and three \
pipelines on Spark that turn them into tables.

The pipelines are stopped and go on where they were. At the end every table is compared with a \
calculation in plain Python, and a chart is drawn. Nothing is left behind but the chart:

    headwater demo

A smaller one, with the broker's data and the lake left in ./headwater-demo to look at:

    headwater demo --orders 2000 --seconds 5 --keep

It needs Java, and Spark: pip install '.\\[demo]' in a clone, which `make demo` does by itself.

The exit code is 0 if every result is right.
"""


@app.command(help=HELP)
def demo(
    orders: Annotated[
        int, typer.Option("--orders", metavar="N", help="How many orders the shop gets.")
    ] = 20_000,
    seconds: Annotated[
        float,
        typer.Option(
            "--seconds", metavar="S", min=0.0, help="How long the first wave of them takes."
        ),
    ] = 20.0,
    seed: Annotated[
        int,
        typer.Option("--seed", metavar="N", help="Another seed makes another stream of orders."),
    ] = 2026,
    chart: Annotated[
        Path, typer.Option("--chart", metavar="FILE", help="The PNG to write.")
    ] = Path("headwater-demo.png"),
    keep: Annotated[
        str | None,
        typer.Option(
            "--keep",
            metavar="[DIR]",
            help=f"Keep the broker's data and the lake, in ./{KEEP_DEFAULT} or in a new directory "
            "that you name.",
        ),
    ] = None,
    master: Annotated[
        str, typer.Option("--master", metavar="URL", help="Where Spark runs.")
    ] = "local[2]",
    conf: Annotated[
        list[str] | None,
        typer.Option("--conf", metavar="NAME=VALUE", help="A setting of Spark; may be repeated."),
    ] = None,
) -> None:
    if orders < ORDERS_MIN:
        raise typer.BadParameter(
            f"{orders} is less than {ORDERS_MIN}, too few for a second wave", param_hint="--orders"
        )
    directory = None if keep is None else Path(keep or KEEP_DEFAULT)
    if directory is not None and directory.exists() and any(directory.iterdir()):
        raise typer.BadParameter(f"{directory} is not empty; name another", param_hint="--keep")
    configs = _configs(conf or [])
    require_spark()
    from rich.console import Console

    from headwater.pipeline.demo.run import DemoOptions, run_demo

    options = DemoOptions(
        seed=seed,
        order_count=orders,
        seconds=seconds,
        directory=directory,
        chart=chart,
        master=master,
        configs=configs,
    )
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        code = run_demo(options, Console())
    except KeyboardInterrupt:
        print("\nStopped; nothing is left behind.", file=sys.stderr)
        code = EXIT_INTERRUPTED
    raise typer.Exit(code)


def require_spark() -> None:
    """Raise an error that says what to install, if something is missing."""
    missing = [name for name in PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        raise missing_package("The demo", missing[0], "demo")


def _configs(assignments: list[str]) -> dict[str, str]:
    configs = {}
    for assignment in assignments:
        name, separator, value = assignment.partition("=")
        if not separator:
            raise typer.BadParameter(f"{assignment!r} should be NAME=VALUE", param_hint="--conf")
        configs[name] = value
    return configs


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
