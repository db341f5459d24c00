"""Reads what a client's user configured: a mapping with Kafka's names, and keyword arguments.

A keyword is the setting's name with underscores for dots, and wins over the mapping. Values may be
text, as in a properties file, or what Python has for it: True, 5, 0.5, a list, a `timedelta` for a
time. None leaves the default. Mistakes are answered in the spelling that the user used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from datetime import timedelta
from enum import Enum
from os import PathLike, fspath
from typing import Final

from headwater.base.setting_values import SettingValues, unknown_setting
from headwater.base.settings import Setting, SettingError, SettingKind, SettingTable

_SECURED_PREFIXES: Final = ("sasl.", "ssl.")
_PLAINTEXT: Final = "PLAINTEXT"
_MS: Final = ".ms"

#: What librdkafka and its relatives call a setting that Kafka has under another name.
_OTHER_NAMES: Final = {
    "auto.commit.enable": "enable.auto.commit",
    "compression.codec": "compression.type",
    "max.in.flight": "max.in.flight.requests.per.connection",
    "metadata.broker.list": "bootstrap.servers",
    "message.send.max.retries": "retries",
    "message.timeout.ms": "delivery.timeout.ms",
    "max.batch.size": "batch.size",
    "fetch.message.max.bytes": "max.partition.fetch.bytes",
    "fetch.wait.max.ms": "fetch.max.wait.ms",
    "partition.assignors": "partition.assignment.strategy",
    "queue.buffering.max.kbytes": "buffer.memory",
    "queue.buffering.max.ms": "linger.ms",
    "request.required.acks": "acks",
    "socket.timeout.ms": "request.timeout.ms",
    "topic.metadata.refresh.interval.ms": "metadata.max.age.ms",
}


def parse_settings(
    table: SettingTable,
    config: Mapping[str, object] | None,
    keywords: Mapping[str, object],
) -> SettingValues:
    """The values of a table's settings; raises `SettingError`."""
    texts: dict[str, str] = {}
    for name, value in given_config(config).items():
        _add(texts, table, name, name, value)
    for keyword, value in keywords.items():
        _add(texts, table, keyword.replace("_", "."), keyword, value)
    return table.parse(texts)


def given_config(config: Mapping[str, object] | None) -> Mapping[str, object]:
    """A mapping of settings by name; raises `SettingError` for anything else."""
    if config is None:
        return {}
    if not isinstance(config, Mapping):
        raise SettingError(
            f"Settings cannot be {config!r}: give a mapping, as in {{'bootstrap.servers': "
            "'localhost:9092'}, or keywords, as in bootstrap_servers='localhost:9092'."
        )
    for name in config:
        if not isinstance(name, str):
            raise SettingError(f"The name of a setting cannot be {name!r}: it must be text.")
    return config


def _add(
    texts: dict[str, str], table: SettingTable, name: str, written: str, value: object
) -> None:
    """Take over one setting, which the user called `written`."""
    if value is None and name in table:
        return
    _check_is_plaintext(name, written, value)
    if name not in table:
        raise _unknown(table, name, written)
    row = replace(table[name], name=written)
    text = _text_of(row, name, value)
    # Parsed again with the table's own name; here the message has the user's.
    row.parse(text)
    texts[name] = text


def _unknown(table: SettingTable, name: str, written: str) -> SettingError:
    is_keyword = name != written
    other = _OTHER_NAMES.get(name)
    if other is not None and other in table:
        shown = other.replace(".", "_") if is_keyword else other
        return SettingError(f"There is no {table.area} setting {written!r}: use {shown}.")
    known = [row.name.replace(".", "_") if is_keyword else row.name for row in table]
    return unknown_setting(written, known, table.area)


def _check_is_plaintext(name: str, written: str, value: object) -> None:
    if name.startswith(_SECURED_PREFIXES):
        raise SettingError(
            f"The setting {written} cannot be used: this client speaks PLAINTEXT only, "
            "without TLS and without SASL."
        )
    if name == "security.protocol" and str(value).strip() != _PLAINTEXT:
        raise SettingError(
            f"The setting {written} cannot be {value!r}: this client speaks PLAINTEXT only, "
            "without TLS and without SASL."
        )


def _text_of(row: Setting, name: str, value: object) -> str:
    """What a properties file would say."""
    is_list = row.kind is SettingKind.LIST
    match value:
        case Enum():
            return _text_of(row, name, value.value)
        case str():
            return value
        case bool() if not is_list:
            return "true" if value else "false"
        case timedelta() if name.endswith(_MS):
            return str(value // timedelta(milliseconds=1))
        case float() if value.is_integer() and row.kind is not SettingKind.DOUBLE:
            return str(int(value))
        case int() | float() if not is_list:
            return str(value)
        case PathLike():
            return str(fspath(value))
        case Sequence() | Set() if is_list and all(isinstance(item, str) for item in value):
            return ",".join(sorted(value) if isinstance(value, Set) else value)
        case _:
            allowed = f"{row.allowed()}, or a list of text" if is_list else row.allowed()
            raise SettingError(f"The setting {row.name} cannot be {value!r}: it must be {allowed}.")
