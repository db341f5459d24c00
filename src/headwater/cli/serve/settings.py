"""The settings of `headwater serve`: defaults, a file, variables, assignments, flags on top."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence

from headwater.base.printable import printable
from headwater.base.settings import SettingError, SettingValues
from headwater.broker.settings.configuration import Configuration
from headwater.broker.settings.rows.trace import DEVELOPMENT_SAMPLE
from headwater.cli.serve.command import DEFAULT_DATA_DIR, DEFAULT_LISTEN
from headwater.cli.serve.environment_settings import SOURCE, environment_settings

COMMAND_LINE = "the command line"
DEVELOPMENT = "development without ZooKeeper"


def serve_settings(
    *,
    listen: Sequence[str],
    data_dirs: Sequence[str],
    broker_id: int | None,
    zookeeper: str | None = None,
    config_path: str | None,
    assignments: Sequence[str],
    environment: Mapping[str, str] | None = None,
) -> SettingValues:
    """What the broker starts with; raises `SettingError` or the `OSError` of the file.

    What a file or a variable says to no effect is told on standard error.
    """
    configuration = Configuration()
    if config_path is not None:
        configuration.read_file(_text(config_path), config_path)
    variables, warnings = environment_settings(environment or {})
    configuration.read_texts(variables, SOURCE)
    configuration.read_assignments(assignments)
    for warning in (*configuration.warnings, *warnings):
        print(f"headwater: {printable(warning)}", file=sys.stderr)
    values = configuration.values
    flags: dict[str, str] = {}
    if listen:
        flags["listeners"] = ",".join(listen)
    elif "listeners" not in values.sources:
        # Kafka listens on every interface unless told otherwise; without access control that is
        # for somebody to ask for.
        flags["listeners"] = DEFAULT_LISTEN
    if data_dirs:
        flags["log.dirs"] = ",".join(data_dirs)
    elif not {"log.dirs", "log.dir"} & values.sources.keys():
        flags["log.dirs"] = os.path.abspath(DEFAULT_DATA_DIR)
    if broker_id is not None:
        flags["broker.id"] = str(broker_id)
        if "node.id" in values.sources:
            flags["node.id"] = str(broker_id)
    if zookeeper is not None:
        flags["zookeeper.connect"] = zookeeper
    configuration.read_texts(flags, COMMAND_LINE)
    if not {"zookeeper.connect", "trace.sample"} & configuration.values.sources.keys():
        # One broker, or a few in one process, on a store of their own: somebody develops.
        configuration.read_texts({"trace.sample": DEVELOPMENT_SAMPLE}, DEVELOPMENT)
    return configuration.settle()


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except UnicodeDecodeError:
        raise SettingError(f"{path} is no properties file: it is not text in UTF-8.") from None
