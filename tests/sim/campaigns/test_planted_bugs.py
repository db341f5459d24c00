"""Each property has a bug that breaks it: the campaign must find every one of them.

A checker that finds nothing may be right or may be blind; these tell which.
"""

import asyncio
import re
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from headwater.broker.requests.dispatcher import Dispatcher
from headwater.replication import fetch
from headwater.replication.partition.partition import Partition
from headwater.replication.partition.partition_read import PartitionRead, read_for_consumer
from headwater.sim.campaigns.broker import BrokerCampaign
from headwater.sim.disk.file_journal import FileJournal
from headwater.storage.producers.entry import ProducerEntry
from headwater.storage.recovery.loader import LogLoader
from headwater.wire.api_keys import ApiKey

Plant = Callable[[pytest.MonkeyPatch], None]

#: A bug that this many seeds do not find would stay hidden.
SEEDS_MAX = 60


def acknowledge_before_sync(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Partition, "needs_fsync", lambda _self, _acks: False)


def forget_producers_at_restart(monkeypatch: pytest.MonkeyPatch) -> None:
    load = LogLoader.load

    def load_and_forget(self: LogLoader) -> Any:
        log = load(self)
        log.producer_states._entries.clear()
        return log

    monkeypatch.setattr(LogLoader, "load", load_and_forget)


def store_repetitions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ProducerEntry, "find_duplicate", lambda _self, _header: None)
    monkeypatch.setattr(ProducerEntry, "continues_with", lambda _self, _sequence: True)


def handle_out_of_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some produce requests are set aside for a moment, and nobody looks at sequences."""
    monkeypatch.setattr(ProducerEntry, "continues_with", lambda _self, _sequence: True)
    handle, random = Dispatcher._handle_exchange, Random(1)

    def handle_later(self: Dispatcher, handler: Any, *arguments: Any) -> None:
        delay_s = 0.05 if handler.api_key is ApiKey.PRODUCE and random.random() < 0.3 else 0
        asyncio.get_running_loop().call_later(delay_s, handle, self, handler, *arguments)

    monkeypatch.setattr(Dispatcher, "_handle_exchange", handle_later)


def keep_topics_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    write_without_sync(monkeypatch, rb'"/brokers/topics/[^"]*": \[')


def keep_deletions_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    write_without_sync(monkeypatch, rb'"/brokers/topics/[^"]*": null')
    # What was interrupted would be finished at the next start.
    finish = "headwater.cluster.controller.controller.Controller._finish_deletions"
    monkeypatch.setattr(finish, do_nothing)


async def do_nothing(*_arguments: object) -> None:
    """Stands where something would be done."""


def write_without_sync(monkeypatch: pytest.MonkeyPatch, what: bytes) -> None:
    append = FileJournal._append

    def append_without_sync(self: FileJournal, data: bytes) -> None:
        if re.search(what, data) is None:
            append(self, data)
            return
        assert self._file is not None
        try:
            self._file.write_at(self._end, data)
        except OSError:
            append(self, data)  # A disk that is full is told of as ever.
        else:
            self._end += len(data)

    monkeypatch.setattr(FileJournal, "_append", append_without_sync)


def show_old_high_watermarks(monkeypatch: pytest.MonkeyPatch) -> None:
    random = Random(1)

    def read_with_old(*arguments: Any, **options: Any) -> PartitionRead:
        result = read_for_consumer(*arguments, **options)
        old = max(result.high_watermark - random.choice((0, 0, 0, 2)), 0)
        return result._replace(high_watermark=old)

    monkeypatch.setattr(fetch, "read_for_consumer", read_with_old)


def never_sync(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Partition, "request_fsync", lambda _self, _offset: None)


@pytest.mark.parametrize(
    ("plant", "broken"),
    [
        (acknowledge_before_sync, "nothing acknowledged is lost|never replaced|can be written"),
        (forget_producers_at_restart, "stored once"),
        (store_repetitions, "stored once"),
        (handle_out_of_order, "order of a producer is kept|stored once"),
        (keep_topics_in_memory, "created topics stay"),
        (keep_deletions_in_memory, "deleted topics stay away|created topics stay"),
        (show_old_high_watermarks, "high watermark never goes back"),
        (never_sync, "everybody gets done|can be written"),
    ],
)
def test_a_planted_bug_is_found(plant: Plant, broken: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    monkeypatch.setattr("headwater.sim.campaigns.broker.HEALED_TIME_MAX_S", 20.0)
    with pytest.raises(AssertionError, match=broken) as found:
        for seed in range(SEEDS_MAX):
            BrokerCampaign(seed).run()
    assert str(found.value).startswith("seed ")
