"""Which segments stay for what waits in them."""

from headwater.storage.waiting_messages import WaitingMessages


def test_a_segment_stays_until_what_replaces_its_messages_is_safe() -> None:
    waiting = WaitingMessages()
    waiting.is_complete = True
    waiting.add(0, 100)
    waiting.add(0, 100)
    waiting.remove(0, end_offset=41)
    assert waiting.holds(0, high_watermark=50)  # One still waits there.
    waiting.remove(0, end_offset=43)
    assert waiting.holds(0, high_watermark=42)
    assert not waiting.holds(0, high_watermark=43)
    assert (waiting.count, waiting.bytes, waiting.segments) == (0, 0, [])


def test_every_segment_stays_until_all_is_known() -> None:
    waiting = WaitingMessages()
    assert waiting.holds(0, high_watermark=10)
    waiting.load_json({"5": [1, 20]})
    assert waiting.holds(0, high_watermark=10)
    waiting.is_complete = True
    assert not waiting.holds(0, high_watermark=10)
    assert waiting.holds(5, high_watermark=10)
