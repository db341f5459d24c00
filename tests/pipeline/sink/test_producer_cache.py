"""Producers that are kept for the next task of a worker."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import cast

import pytest

from headwater.client.producer.producer import Producer
from headwater.pipeline.sink.producer_cache import ProducerCache


class FakeProducer:
    def __init__(self, settings: Mapping[str, str]) -> None:
        self.settings = settings
        self.closed = threading.Event()

    def close(self, timeout_s: float | None = None) -> None:
        self.closed.set()


def make(settings: Mapping[str, str]) -> Producer:
    return cast(Producer, FakeProducer(settings))


def fake(producer: Producer) -> FakeProducer:
    return cast(FakeProducer, producer)


def test_one_is_used_again_and_never_by_two_at_once() -> None:
    cache = ProducerCache(make)
    with cache.borrowed({"a": "1"}) as first, cache.borrowed({"a": "1"}) as second:
        assert first is not second
    with cache.borrowed({"a": "1"}) as third:
        # The first to come back was replaced by the second, and closed.
        assert third is first or third is second
        assert fake(first).closed.is_set() != fake(second).closed.is_set()
    with cache.borrowed({"a": "2"}) as other:
        assert other is not third
    cache.close()
    assert fake(third).closed.is_set()
    assert fake(other).closed.is_set()


def test_one_that_failed_is_closed() -> None:
    cache = ProducerCache(make)
    with pytest.raises(ZeroDivisionError), cache.borrowed({}) as first:
        raise ZeroDivisionError
    assert fake(first).closed.is_set()
    with cache.borrowed({}) as second:
        assert second is not first
    cache.close()


def test_one_that_nobody_uses_is_closed_after_a_while() -> None:
    cache = ProducerCache(make, idle_s=0.01)
    with cache.borrowed({}) as producer:
        pass
    assert fake(producer).closed.wait(20)
    with cache.borrowed({}) as next_one:
        assert next_one is not producer
    cache.close()
