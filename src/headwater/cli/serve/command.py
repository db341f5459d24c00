"""`headwater serve`: run a broker, or a few in one process, until told to stop.

Standard output says where it listens, where its data is, what an acknowledgement promises, how far
loading is, and, in one line that scripts can wait for, that it is ready. The log goes to standard
error or to a file.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Annotated, Final

import typer

app = typer.Typer(pretty_exceptions_enable=False)

DEFAULT_LISTEN: Final = "127.0.0.1:9092"
DEFAULT_DATA_DIR: Final = "headwater-data"
MAX_BROKERS: Final = 16
LOG_LEVELS: Final = ("debug", "info", "warning", "error")
LOG_FORMATS: Final = ("text", "json")
LOG_FILE_BYTES_MAX: Final = 100 << 20
LOG_FILE_COUNT: Final = 10

HELP = f"""\
Run a broker until Ctrl-C or SIGTERM, which finish what is under way and leave the data clean.

For a first try, on {DEFAULT_LISTEN} with the data in ./{DEFAULT_DATA_DIR}:

    headwater serve

For other machines to reach, with a properties file as Kafka has it and one setting over it:

    headwater serve --listen 0.0.0.0:9092 --data-dir /var/lib/headwater --config \
server.properties --set num.partitions=3

For tests, on a free port, which the line "Headwater is ready" tells, and without waiting for disks:

    headwater serve --listen 127.0.0.1:0 --data-dir "$(mktemp -d)" --set acks.all.flush=off

As a member of a cluster, with brokers on other machines and ZooKeeper between them:

    headwater serve --broker-id 1 --listen 0.0.0.0:9092 --zookeeper zoo1:2181,zoo2:2181/orders

A cluster to try things on, three brokers in this one process on ports 9092 to 9094:

    headwater serve --brokers 3

In a container, with settings in the environment; log.retention.ms is HEADWATER_LOG_RETENTION_MS:

    HEADWATER_BROKER_ID=1 HEADWATER_LOG_RETENTION_MS=86400000 headwater serve

What is set twice comes from the later of: the defaults, --config, the environment, --set, the \
other options here.
"""


@app.command(help=HELP)
def serve(
    listen: Annotated[
        list[str] | None,
        typer.Option(
            "--listen",
            metavar="HOST:PORT",
            help="Where to listen; may be repeated. Port 0 is a free one, no host every interface; "
            "NAME://HOST:PORT gives the listener a name.",
            show_default=DEFAULT_LISTEN,
        ),
    ] = None,
    data_dir: Annotated[
        list[str] | None,
        typer.Option(
            "--data-dir",
            metavar="DIR",
            help="Where the data is; may be repeated for several disks.",
            show_default=f"./{DEFAULT_DATA_DIR}",
        ),
    ] = None,
    broker_id: Annotated[
        int | None,
        typer.Option(
            "--broker-id",
            metavar="N",
            min=0,
            help="The broker's number.",
            show_default="made up once and kept",
        ),
    ] = None,
    zookeeper: Annotated[
        str | None,
        typer.Option(
            "--zookeeper",
            metavar="HOST:PORT[,HOST:PORT][/PATH]",
            help="The ZooKeeper of the cluster to join, and the path of the cluster in it.",
            show_default="none: the broker is alone",
        ),
    ] = None,
    brokers: Annotated[
        int | None,
        typer.Option(
            "--brokers",
            metavar="N",
            min=1,
            max=MAX_BROKERS,
            help="Run so many brokers in this process, to try a cluster: ids and ports count up, "
            "the data is in DIR/broker-ID.",
            show_default="one, by itself",
        ),
    ] = None,
    config: Annotated[
        str | None,
        typer.Option(
            "--config", metavar="FILE", help="Settings: a properties file, as Kafka's brokers read."
        ),
    ] = None,
    assignments: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="One setting; may be repeated."),
    ] = None,
    log_level: Annotated[
        str,
        typer.Option(
            "--log-level",
            metavar="LEVEL",
            help=f"What goes to the log: {', '.join(LOG_LEVELS)}.",
        ),
    ] = "info",
    log_format: Annotated[
        str,
        typer.Option(
            "--log-format",
            metavar="FORMAT",
            help="How the log looks: text, or json for one object on each line.",
        ),
    ] = "text",
    log_file: Annotated[
        str | None,
        typer.Option(
            "--log-file",
            metavar="FILE",
            help="Where the log goes.",
            show_default="standard error",
        ),
    ] = None,
    log_file_max_bytes: Annotated[
        int,
        typer.Option(
            "--log-file-max-bytes",
            metavar="N",
            min=0,
            help="Begin another log file after so many bytes; 0 leaves that to logrotate.",
        ),
    ] = LOG_FILE_BYTES_MAX,
    log_file_count: Annotated[
        int,
        typer.Option(
            "--log-file-count", metavar="N", min=1, help="How many old log files to keep."
        ),
    ] = LOG_FILE_COUNT,
) -> None:
    _check_choice("--log-level", log_level, LOG_LEVELS)
    _check_choice("--log-format", log_format, LOG_FORMATS)
    # The broker and all that it needs load here, so that --help and mistakes answer at once.
    from headwater.cli.serve.broker_log import LogOptions
    from headwater.cli.serve.broker_process import run_broker
    from headwater.cli.serve.development_cluster import refuse_directories_of_several
    from headwater.cli.serve.settings import serve_settings

    settings = serve_settings(
        listen=listen or [],
        data_dirs=data_dir or [],
        broker_id=broker_id,
        zookeeper=zookeeper,
        config_path=config,
        assignments=assignments or [],
        environment=os.environ,
    )
    if brokers is None:
        refuse_directories_of_several(settings)
    log = LogOptions(
        log_level.upper(), log_format.lower(), log_file, log_file_max_bytes, log_file_count
    )
    raise typer.Exit(run_broker(settings, log, broker_count=brokers or 0))


def _check_choice(option: str, text: str, choices: Sequence[str]) -> None:
    if text.lower() not in choices:
        raise typer.BadParameter(f"{text!r} is none of {', '.join(choices)}", param_hint=option)
