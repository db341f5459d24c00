"""`headwater zookeeper`: run a ZooKeeper for development until it is told to stop."""

from __future__ import annotations

from typing import Annotated, Final

import typer

app = typer.Typer(pretty_exceptions_enable=False)

DEFAULT_PORT: Final = 2181
DEFAULT_DATA_DIR: Final = "zookeeper-data"
ENSEMBLE_MAX: Final = 9

HELP = f"""\
Run ZooKeeper on this machine, for development, until Ctrl-C or SIGTERM.

One server on 127.0.0.1:{DEFAULT_PORT}, with its data in ./{DEFAULT_DATA_DIR}, and a broker on it:

    headwater zookeeper

    headwater serve --zookeeper 127.0.0.1:{DEFAULT_PORT}/my-cluster

An ensemble of three, of which any one may fail, on the ports 2181, 2182 and 2183:

    headwater zookeeper --data-dir zk --port 2181 --ensemble 3

The line "ZooKeeper is ready at ..." tells what to give to --zookeeper. ZooKeeper needs Java. It is
taken from pyspark where that is installed; otherwise Maven fetches it once, about 15 MB.
"""


@app.command(help=HELP)
def zookeeper(
    data_dir: Annotated[
        str,
        typer.Option("--data-dir", metavar="DIR", help="Where the data is."),
    ] = DEFAULT_DATA_DIR,
    port: Annotated[
        int,
        typer.Option(
            "--port",
            metavar="N",
            min=0,
            max=65_535,
            help="Where the first server listens, the others behind it; 0 for free ports.",
        ),
    ] = DEFAULT_PORT,
    ensemble: Annotated[
        int,
        typer.Option(
            "--ensemble", metavar="N", min=1, max=ENSEMBLE_MAX, help="How many servers there are."
        ),
    ] = 1,
) -> None:
    # Loaded here, so that --help and mistakes answer at once.
    from headwater.cli.zookeeper.process import run_zookeeper

    raise typer.Exit(run_zookeeper(data_dir, port, ensemble))
