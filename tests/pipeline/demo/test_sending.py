"""Slices of the shop's time."""

from __future__ import annotations

from headwater.pipeline.demo.sending import SLICE_MS, slices
from headwater.pipeline.demo.shop import make_stream


def test_slices_hold_every_record_in_its_order_and_within_its_time() -> None:
    wave = make_stream(5, 1_000).first_wave
    parts = list(slices(wave))
    assert [record for part in parts for record in part] == list(wave)
    assert len(parts) > 50
    for part in parts:
        assert part[-1].sent_ms - part[0].sent_ms < SLICE_MS
        assert len({record.sent_ms // SLICE_MS for record in part}) == 1
