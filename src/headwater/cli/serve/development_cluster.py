"""`headwater serve --brokers N`: the settings of several brokers that run in one process.

They share one embedded metadata store, `metadata/metadata.sqlite` below the first data directory,
and differ in what must differ: ids count up from the first, data is in `broker-<id>` below each
data directory, and every port is one higher than that of the broker before. It is a cluster to try
things on; one where a machine may fail has a process, and a machine, for each broker.
"""

from __future__ import annotations

import os
from typing import Final

from headwater.base.settings import SettingError, SettingValues
from headwater.broker.settings.listener_settings import client_endpoints
from headwater.broker.settings.rows.identity import broker_id_of
from headwater.broker.settings.static_settings import check_static
from headwater.net.endpoint import PORT_MAX, join_address, parse_endpoints, split_address
from headwater.storage.log_settings import log_directory_paths

BROKERS_FLAG: Final = "--brokers"
_STORE_DIRECTORY: Final = "metadata"
#: What every data directory of a broker has.
_MARK: Final = "meta.properties"
_INTERNAL_REPLICAS = (
    "offsets.topic.replication.factor",
    "transaction.state.log.replication.factor",
    "audit.topic.replication.factor",
    "trace.topic.replication.factor",
)
_LISTENER_SETTINGS = ("listeners", "advertised.listeners")


def broker_settings(values: SettingValues, count: int) -> list[SettingValues]:
    """What each broker starts with; raises `SettingError` where they would get into each other."""
    _refuse_directories_of_one(values)
    first_id = max(broker_id_of(values), 0)
    brokers = [_settings_of(values, first_id, index, count) for index in range(count)]
    _check_ports(brokers)
    return brokers


def store_directory(values: SettingValues) -> str:
    """Where the metadata store is that all of them share."""
    return os.path.join(log_directory_paths(values)[0], _STORE_DIRECTORY)


def refuse_directories_of_several(values: SettingValues) -> None:
    """A broker that is alone must not take the data of several for logs of its own."""
    for path in log_directory_paths(values):
        for name in sorted(os.listdir(path)) if os.path.isdir(path) else ():
            if os.path.exists(os.path.join(path, name, _MARK)):
                raise SettingError(
                    f"The data directory {path} holds a cluster, with the data of a broker in "
                    f"{name}: start it with {BROKERS_FLAG}, or choose another directory."
                )


def _refuse_directories_of_one(values: SettingValues) -> None:
    for path in log_directory_paths(values):
        if os.path.exists(os.path.join(path, _MARK)):
            raise SettingError(
                f"The data directory {path} holds the data of one broker: choose another one for "
                f"{BROKERS_FLAG}."
            )


def _settings_of(values: SettingValues, first_id: int, index: int, count: int) -> SettingValues:
    broker_id = first_id + index
    texts = {
        "broker.id": str(broker_id),
        "log.dirs": ",".join(
            os.path.join(path, f"broker-{broker_id}") for path in log_directory_paths(values)
        ),
    }
    if values.optional_integer("node.id") is not None:
        texts["node.id"] = str(broker_id)
    for name in _INTERNAL_REPLICAS:
        # Said, so that a topic which is made while brokers still start waits for all of them.
        if name not in values.sources:
            texts[name] = str(min(count, values.integer(name)))
    for name in _LISTENER_SETTINGS:
        listeners = values.optional_text(name)
        if listeners:
            texts[name] = ",".join(
                f"{each.listener_name}://{_shifted(each.host, each.port, index)}"
                for each in parse_endpoints(listeners)
            )
    metrics = values.text("metrics.listen")
    if metrics:
        texts["metrics.listen"] = _shifted(*split_address(metrics), index)
    own = values.with_overrides(texts, BROKERS_FLAG)
    check_static(own)
    return own


def _shifted(host: str, port: int, index: int) -> str:
    """An address so many ports further on; a free port stays one."""
    shifted = port + index if port else 0
    if shifted > PORT_MAX:
        raise SettingError(f"There is no port {shifted} for broker {index + 1} of {BROKERS_FLAG}.")
    return join_address(host, shifted)


def _check_ports(brokers: list[SettingValues]) -> None:
    taken: set[int] = set()
    for values in brokers:
        ports = [each.port for each in client_endpoints(values)]
        metrics = values.text("metrics.listen")
        if metrics:
            ports.append(split_address(metrics)[1])
        for port in filter(None, ports):
            if port in taken:
                raise SettingError(
                    f"Two of the brokers would listen on port {port}: leave as many ports free "
                    f"behind each address as {BROKERS_FLAG} says."
                )
            taken.add(port)
