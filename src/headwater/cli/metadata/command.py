"""`headwater metadata`: export the metadata store to a file, import it into another store."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, Final, TypeAlias

import typer

if TYPE_CHECKING:
    from headwater.cli.metadata.places import Place

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)

DATA_DIR_OPTION: Final = "--data-dir"

HELP = """\
What brokers have agreed on, as a file: topics, who holds and leads their partitions, settings, ids.

The store is ZooKeeper, or the file metadata.sqlite in the first data directory of a broker that \
stands alone. To move such a broker to ZooKeeper, stop it, and then:

    headwater metadata export --data-dir headwater-data -o metadata.json

    headwater metadata import metadata.json --zookeeper zoo1:2181/orders

As a backup, at any time, the brokers may go on:

    headwater metadata export --zookeeper zoo1:2181/orders -o metadata.json

Records are not in it, nor are committed offsets and transactions: those lie in the data \
directories of brokers. The cluster's secret is in it: whoever can read the file can speak as a \
broker, so it is written for its owner alone.
"""

File: TypeAlias = Annotated[
    str, typer.Argument(metavar="FILE", help="What an export has written.", show_default=False)
]
DataDir: TypeAlias = Annotated[
    str | None,
    typer.Option(
        DATA_DIR_OPTION,
        metavar="DIR",
        help="The store of a broker that stands alone, by its first data directory.",
    ),
]
ZooKeeper: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--zookeeper", metavar="HOST:PORT[,HOST:PORT][/PATH]", help="The store of a cluster."
    ),
]
Config: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--config",
        metavar="FILE",
        help="A broker's properties file, which says where its store is and how to log in there.",
    ),
]


@app.callback(help=HELP)
def _metadata() -> None:
    pass


@app.command("export")
def export_metadata(
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="Where to write it.")
    ],
    data_dir: DataDir = None,
    zookeeper: ZooKeeper = None,
    config: Config = None,
) -> None:
    """Write what a metadata store holds to a file."""
    place = _place(data_dir, zookeeper, config)
    import asyncio

    from headwater.cli.metadata.actions import export_to

    asyncio.run(export_to(place, output))


@app.command("import")
def import_metadata(
    path: File,
    data_dir: DataDir = None,
    zookeeper: ZooKeeper = None,
    config: Config = None,
    replace: Annotated[
        bool,
        typer.Option("--replace", help="Remove what the store holds of a cluster."),
    ] = False,
) -> None:
    """Put what a file holds into a metadata store, which must be empty."""
    place = _place(data_dir, zookeeper, config)
    import asyncio

    from headwater.cli.metadata.actions import import_from

    asyncio.run(import_from(path, place, may_replace=replace))


@app.command("check")
def check_metadata(path: File) -> None:
    """Say what is in a file, and whether brokers could work with it."""
    import asyncio

    from headwater.cli.metadata.actions import check_file

    asyncio.run(check_file(path))


def _place(data_dir: str | None, zookeeper: str | None, config: str | None) -> Place:
    if (data_dir is None) == (zookeeper is None) and (config is None or data_dir is not None):
        raise typer.BadParameter(
            f"say either {DATA_DIR_OPTION} or --zookeeper: which store is it?",
            param_hint=DATA_DIR_OPTION,
        )
    from headwater.cli.metadata.places import place_of

    return place_of(data_dir, zookeeper, config, os.environ)
