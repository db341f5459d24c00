"""The types of settings: all of them are there, and a type checker refuses what the client would.

mypy reads this file as it reads all others. A line that it is expected to refuse says so, and mypy
complains about such a remark where it finds nothing to refuse; so these tests need not run it.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Literal, get_args, get_type_hints

import pytest

from headwater import (
    Admin,
    AdminSettings,
    AsyncAdmin,
    AsyncConsumer,
    AsyncProducer,
    Consumer,
    ConsumerSettings,
    PlainAssignor,
    Producer,
    ProducerSettings,
)
from headwater.base.settings import SettingKind, SettingTable
from headwater.client.assignors.assignor import MemberAssignment, Subscriptions
from headwater.client.assignors.range_assignor import RangeAssignor
from headwater.client.settings.admin_settings import ADMIN_SETTINGS
from headwater.client.settings.client_config import parse_settings
from headwater.client.settings.consumer_settings import CONSUMER_SETTINGS
from headwater.client.settings.producer_settings import PRODUCER_SETTINGS

TABLES = [
    (ProducerSettings, PRODUCER_SETTINGS),
    (ConsumerSettings, CONSUMER_SETTINGS),
    (AdminSettings, ADMIN_SETTINGS),
]
CLIENTS = [
    (Producer, *TABLES[0]),
    (AsyncProducer, *TABLES[0]),
    (Consumer, *TABLES[1]),
    (AsyncConsumer, *TABLES[1]),
    (Admin, *TABLES[2]),
    (AsyncAdmin, *TABLES[2]),
]


@pytest.mark.parametrize(("client", "settings", "table"), CLIENTS)
def test_each_setting_is_a_keyword_of_its_client(
    client: type, settings: type, table: SettingTable
) -> None:
    parameters = set(inspect.signature(client).parameters)
    keywords = set(get_type_hints(settings))
    rows = {row.name.replace(".", "_") for row in table}
    assert not keywords & parameters
    assert keywords <= rows <= keywords | parameters


@pytest.mark.parametrize("client", [client for client, *_ in CLIENTS])
def test_a_user_is_shown_nothing_of_the_simulators(client: type) -> None:
    parameters = set(inspect.signature(client).parameters)
    assert not parameters & {"clock", "connect", "generator", "environment"}


@pytest.mark.parametrize(("settings", "table"), TABLES)
def test_what_the_types_allow_can_be_read(settings: type, table: SettingTable) -> None:
    for keyword, hint in get_type_hints(settings).items():
        row = table[keyword.replace("_", ".")]
        unset = "0.5" if row.kind is SettingKind.DOUBLE else "a"
        for allowed in get_args(hint):
            for value in _samples(allowed, row.render(row.default) or unset):
                parse_settings(table, None, {keyword: value})


def _samples(allowed: object, text: str) -> Sequence[object]:
    """Values of a type; the text is one that the setting takes."""
    if getattr(allowed, "__origin__", None) is Literal:
        return get_args(allowed)
    if allowed is str:
        return [text]
    if allowed is bool:
        return [True, False]
    if allowed is int:
        return [int(text)]
    if allowed is float:
        return [float(text)]
    if allowed is timedelta:
        return [timedelta(milliseconds=int(text))]
    if allowed == Sequence[str]:
        return [text.split(","), tuple(text.split(","))]
    # None, and assignors, which the consumer replaces by their names.
    return [None]


class _ByName(PlainAssignor):
    name = "by-name"

    def assign(
        self, partition_counts: Mapping[str, int], subscriptions: Subscriptions
    ) -> dict[str, MemberAssignment]:
        return {}


def _accepted() -> None:
    """Never called: what mypy takes."""
    Producer(bootstrap_servers="a:1", linger_ms=5, acks="all", enable_idempotence=True)
    Producer({"linger.ms": 5}, bootstrap_servers=["a:1", "b:2"], linger_ms=timedelta(seconds=1))
    Producer(acks=1, linger_ms="5", enable_idempotence="false", transactional_id=None)
    AsyncProducer(compression_type="zstd", batch_size=1 << 20, spool_fsync="never")
    Consumer(group_id="g", isolation_level="read_committed", auto_offset_reset="earliest")
    AsyncConsumer(partition_assignment_strategy=["range", RangeAssignor, _ByName()])
    Consumer(partition_assignment_strategy=_ByName)
    Admin(default_api_timeout_ms=1000)
    AsyncAdmin(bootstrap_servers=("a:1",))
    config: ProducerSettings = {"bootstrap_servers": "a:1", "linger_ms": 5}
    config["acks"] = "1"
    Producer(**config)
    Producer(**config, value_serializer=str.encode)


def _refused() -> None:
    """Never called: what mypy does not take."""
    Producer(liger_ms=5)  # type: ignore[call-arg]
    Producer(linger_ms=[])  # type: ignore[arg-type]
    Producer(linger_ms=0.5)  # type: ignore[arg-type]
    Producer(acks="most")  # type: ignore[arg-type]
    Producer(acks=2)  # type: ignore[arg-type]
    Producer(group_id="g")  # type: ignore[call-arg]
    Producer(connect=None)  # type: ignore[call-arg]
    AsyncProducer(compression_type="brotli")  # type: ignore[arg-type]
    AsyncProducer(clock=None)  # type: ignore[call-arg]
    Consumer(group_id=["g"])  # type: ignore[arg-type]
    Consumer(bootstrap_servers=9092)  # type: ignore[arg-type]
    Consumer(linger_ms=5)  # type: ignore[call-arg]
    AsyncConsumer(isolation_level="committed")  # type: ignore[arg-type]
    AsyncConsumer(partition_assignment_strategy=[5])  # type: ignore[list-item]
    Admin(group_id="g")  # type: ignore[call-arg]
    AsyncAdmin(retries=None, security_protocol="SSL")  # type: ignore[arg-type]
    config: ConsumerSettings = {"group_id": 5}  # type: ignore[typeddict-item]
    Producer(**config)  # type: ignore[misc]
