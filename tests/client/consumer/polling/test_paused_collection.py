from __future__ import annotations

import gc

import pytest

from headwater.client.consumer.polling.paused_collection import paused_collection


def test_the_collector_pauses_and_goes_on_also_after_an_error() -> None:
    assert gc.isenabled()
    with paused_collection():
        assert not gc.isenabled()
        with paused_collection():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()
    with pytest.raises(ValueError, match="bad record"), paused_collection():
        raise ValueError("bad record")
    assert gc.isenabled()


def test_who_has_turned_it_off_finds_it_off() -> None:
    gc.disable()
    try:
        with paused_collection():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
