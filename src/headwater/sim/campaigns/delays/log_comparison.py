"""What must hold of a log's deliveries: what is known of them is what the model says.

`start` is the offset at which the log begins.
"""

from __future__ import annotations

from headwater.base.durations import LONG_MAX
from headwater.delay.delay_state import DelayState
from headwater.sim.checkers.delivery_model import DeliveryModel


def compare_waiting(name: str, start: int, state: DelayState, model: DeliveryModel) -> None:
    found = [key for key in state.index.between(0, LONG_MAX, 10**9) if key.offset >= start]
    expected = model.order()
    assert found == expected, (
        f"{name} up to {state.applied_offset}: lacks {sorted(set(expected) - set(found))}, "
        f"has too much {sorted(set(found) - set(expected))} of {len(found)}"
    )


def compare_watermark(start: int, state: DelayState, model: DeliveryModel) -> None:
    """If no copy is left in the log, nobody needs to know what was delivered last."""
    is_known = any(copy.offset >= start for copy in model.copies.values())
    assert state.watermark == model.watermark or (
        not is_known and state.watermark < model.watermark
    ), f"{state.watermark} is not {model.watermark}"


def compare_segments(start: int, state: DelayState, model: DeliveryModel) -> None:
    """Exactly the segments stay in which something waits."""
    undecided = [each.offset for some in model.undecided.values() for each in some]
    waiting = [each.key.offset for each in model.waiting.values()]
    held = {state._segment_of(offset) for offset in waiting if offset >= start}
    maybe = {state._segment_of(offset) for offset in undecided if offset >= start}
    # What was deleted on purpose may hold the segment with the log's start until it is due.
    kept = {base for base in state.waiting.segments if base >= start}
    started = {base for base in state.waiting.segments if base < start}
    assert held <= kept | started, f"{held - kept} would go, with all that waits there"
    assert kept <= held | maybe, f"{kept - held} would stay, though nothing waits there"
